#pragma once

namespace memtide::agent {

// What a number usually is, and whether it is surprisingly more now. A pure state machine.
class Usual {
  public:
    // `least` is a difference that matters to nobody. What is a surprise is not usual the next time either,
    // unless it stays so.
    bool is_surprising(double now, double least);
    void forget() { *this = {}; }

  private:
    unsigned times_ = 0;
    double mean_ = 0;
    double deviation_ = 0;  // mean of the absolute ones
};

}  // namespace memtide::agent
