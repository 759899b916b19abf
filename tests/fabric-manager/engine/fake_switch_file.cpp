// The fake switch's state in a file, so that it outlives the process that talks to it.
#include <filesystem>
#include <fstream>
#include <sstream>

#include <boost/json.hpp>

#include "tests/fabric-manager/engine/fake_switch.h"

namespace memtide::fm {

void FakeSwitch::keep_in(const std::string& path) {
    if (std::filesystem::exists(path)) load(path);
    path_ = path;
    save();
}

void FakeSwitch::save() const {
    if (path_.empty()) return;
    namespace json = boost::json;
    json::object out;
    json::array lds;
    for (const FakePort& one : ports)
        for (const FakeLd& ld : one.lds)
            lds.push_back(json::array{ld.serial, ld.size, ld.dirty, ld.online, ld.used, ld.stale, ld.offset});
    json::array bindings;
    for (const FakeVcs& vcs : vcss)
        for (const fmapi::Vppb& one : vcs.vppbs)
            bindings.push_back(json::array{static_cast<int>(one.binding), one.port, one.ld});
    json::object counts;
    for (const auto& [command, count] : calls) counts[command] = count;
    const auto operation = [](const Operation& one) {
        return json::array{one.command,
                           static_cast<int>(one.opcode),
                           one.polls_left,
                           one.done,
                           static_cast<int>(one.code),
                           one.vcs,
                           one.vppb,
                           one.port,
                           one.ld};
    };
    json::array operations;
    operations.push_back(operation(switch_operation_));
    for (const auto& [target, one] : ld_operations_)
        if (!one.command.empty()) operations.push_back(operation(one));
    out["lds"] = std::move(lds);
    out["vppbs"] = std::move(bindings);
    out["calls"] = std::move(counts);
    out["operations"] = std::move(operations);
    out["violations"] = json::array(violations.begin(), violations.end());
    {
        std::ofstream file(path_ + ".new");
        file << json::serialize(out);
    }
    std::filesystem::rename(path_ + ".new", path_);
}

void FakeSwitch::load(const std::string& path) {
    namespace json = boost::json;
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    const json::value in = json::parse(text.str());
    std::size_t n = 0;
    for (FakePort& one : ports)
        for (FakeLd& ld : one.lds) {
            const json::array& saved = in.at("lds").at(n++).as_array();
            ld = {saved[0].to_number<std::uint64_t>(),
                  saved[1].to_number<std::uint64_t>(),
                  saved[2].as_bool(),
                  saved[3].as_bool(),
                  saved[4].as_bool(),
                  saved[5].as_bool(),
                  saved[6].to_number<std::uint64_t>()};
        }
    n = 0;
    for (FakeVcs& vcs : vcss)
        for (fmapi::Vppb& one : vcs.vppbs) {
            const json::array& saved = in.at("vppbs").at(n++).as_array();
            one.binding = static_cast<fmapi::VppbBinding>(saved[0].to_number<std::uint8_t>());
            one.port = saved[1].to_number<std::uint8_t>();
            one.ld = saved[2].to_number<std::uint8_t>();
        }
    for (const auto& [command, count] : in.at("calls").as_object())
        calls[std::string(command)] = count.to_number<int>();
    for (const json::value& one : in.at("violations").as_array()) violations.emplace_back(one.as_string());
    bool first = true;
    for (const json::value& value : in.at("operations").as_array()) {
        const json::array& saved = value.as_array();
        Operation one;
        one.command = std::string(saved[0].as_string());
        one.opcode = static_cast<fmapi::Opcode>(saved[1].to_number<std::uint16_t>());
        one.polls_left = saved[2].to_number<int>();
        one.done = saved[3].as_bool();
        one.code = static_cast<fmapi::ReturnCode>(saved[4].to_number<std::uint16_t>());
        one.vcs = saved[5].to_number<std::uint8_t>();
        one.vppb = saved[6].to_number<std::uint8_t>();
        one.port = saved[7].to_number<std::uint8_t>();
        one.ld = saved[8].to_number<std::uint16_t>();
        if (first)
            switch_operation_ = one;
        else
            ld_operations_[{one.port, one.ld}] = one;
        first = false;
    }
}

}  // namespace memtide::fm
