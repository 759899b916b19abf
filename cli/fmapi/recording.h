#pragma once

#include <fstream>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/fmapi/message.h"
#include "fabric-manager/fmapi/client.h"

namespace memtide::cli {

// One command and its answer, as a recording has it.
struct Exchange {
    fm::Target target;
    fmapi::Message request;
    fmapi::Message response;
};

// Writes exchanges behind what is in a file, a line of JSON each: what was asked of whom, what was answered,
// both readable and in hexadecimal. Each is in the file when add() returns.
class Recorder {
  public:
    static Result<Recorder> open(const std::string& path);
    Result<> add(const Exchange& exchange);

  private:
    Recorder(std::string path, std::ofstream file) : path_(std::move(path)), file_(std::move(file)) {}
    std::string path_;
    std::ofstream file_;
};

// What a Recorder wrote; kInvalidArgument names the line that it cannot read.
Result<std::vector<Exchange>> read_recording(const std::string& path);

}  // namespace memtide::cli
