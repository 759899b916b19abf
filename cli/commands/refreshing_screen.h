#pragma once

#include <chrono>
#include <string>

#include <signal.h>
#include <termios.h>

#include "cli/commands/output.h"

namespace memtide::cli {

// A terminal on which one page is shown again and again: the alternate screen of xterm and all that followed
// it, so that what was there before comes back. Ends at q, ^C and SIGTERM. One at a time; the terminal is as
// it was once it is gone.
class RefreshingScreen {
  public:
    explicit RefreshingScreen(Output& output);
    ~RefreshingScreen();
    RefreshingScreen(const RefreshingScreen&) = delete;
    RefreshingScreen& operator=(const RefreshingScreen&) = delete;

    // What does not fit into the window is left out.
    void show(const std::string& page);
    // False when it was asked to end.
    bool wait_a_second();
    // Gives the terminal back early.
    void close();

  private:
    Output& output_;
    bool is_open_ = true;
    bool has_raw_keys_ = false;
    bool reads_keys_ = false;
    termios before_{};  // when it has
    sigset_t mask_before_{};
    int signals_ = -1;  // signalfd(2): a signal must not leave the terminal as it is
};

}  // namespace memtide::cli
