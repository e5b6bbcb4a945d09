// SPDX-License-Identifier: Apache-2.0
// What the probes of one process cost, by samples of its CPU time, and which of them go when that
// is more than a bound allows: all of a function together, since entries and returns are pairs.
//
// A sample in the code of a probe is its function's. One in the runtime that all probes call is
// that of the probe to which it returns: the first address on the stack that lies in a probe. The
// displaced instructions are the program's own.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collect/cost.h"
#include "collect/losses.h"
#include "inline/attachment.h"
#include "kernel/cpu_samples.h"

namespace clew::engine {

// What may not be exceeded, 0 to 1, and when the session began.
struct OverheadBound {
  double share = 0;
  std::chrono::steady_clock::time_point begin;
};

class ProbeCosts {
 public:
  // A function as the process knows it; names of files may have it twice.
  struct Function {
    std::string module;
    std::string name;
  };
  // A body of a probe of it, and all code that runs for its probe. Code of no function can be
  // seen, and is never taken out.
  void add(const std::optional<Function>& function, uint64_t body,
           std::span<const inline_::CodeSpan> code);
  // Where the runtime may be.
  void set_areas(std::vector<inline_::CodeSpan> areas) { areas_ = std::move(areas); }

  // Of this process, or of one that was forked with its memory.
  void take(const kernel::CpuSample& sample);

  // Takes functions out, the hottest first, if the bound is surely exceeded; each is returned once.
  // While another session changes the process, nothing: look again. `problems` says what could not
  // be done about it, once.
  std::vector<collect::DisarmedProbe> keep_below(const OverheadBound& bound,
                                                 inline_::Attachment& attachment,
                                                 std::vector<std::string>& problems);
  [[nodiscard]] const std::vector<collect::DisarmedProbe>& taken_out() const { return taken_out_; }
  [[nodiscard]] collect::ProcessCost cost(pid_t pid) const;
  // The same, to the log.
  void log_cost(pid_t pid) const;

 private:
  struct OfFunction {
    std::string name;
    std::vector<uint64_t> bodies;
    uint64_t samples = 0;  // Of the session,
    uint64_t recent = 0;   // and of those that are judged.
    bool is_out = false;
  };
  struct Code {
    uint64_t end = 0;
    std::optional<size_t> function;
  };
  using Place = std::map<uint64_t, Code>::const_iterator;

  [[nodiscard]] Place find(uint64_t address) const;
  [[nodiscard]] Place find_probe(const kernel::CpuSample& sample) const;
  void judge_anew();
  std::vector<collect::DisarmedProbe> take_out(const std::vector<size_t>& leaving,
                                               const OverheadBound& bound,
                                               inline_::Attachment& attachment,
                                               std::vector<std::string>& problems);

  std::vector<OfFunction> functions_;
  std::map<std::pair<std::string, std::string>, size_t> indices_;  // By module and name.
  std::map<uint64_t, Code> code_;                                  // By its first address.
  std::vector<inline_::CodeSpan> areas_;
  collect::ShareSamples all_;
  collect::ShareSamples recent_;
  int64_t judged_since_ns_ = 0;  // CLOCK_MONOTONIC.
  std::vector<collect::DisarmedProbe> taken_out_;
  unsigned failures_ = 0;
  bool is_given_up_ = false;
};

}  // namespace clew::engine
