// SPDX-License-Identifier: Apache-2.0
// Takes the probes of one process out whose hits run out of fuel: a loop that does not end costs
// the traced program some 100 µs at each hit. The threads leave such a probe alone by themselves
// after kExhaustedMax hits, of a query together (abi::TargetPage::spent), of D each; this tells the
// user, and ends what the look at the count costs.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "collect/losses.h"
#include "inline/attachment.h"

namespace clew::engine {

inline constexpr uint64_t kExhaustedMax = 8;  // As probes count.

class FuelGuard {
 public:
  // A body of the probe `name`, whose hits without fuel are counted in `word`. Probes that share a
  // word go together.
  void add(uint32_t word, const std::string& name, uint64_t body);
  [[nodiscard]] bool empty() const { return probes_.empty(); }
  // `counts`: by word, of all threads. Takes out what has had enough, and returns it, once.
  // While another session changes the process, nothing: look again. What could not be taken out is
  // not tried again; `problems` says why.
  std::vector<collect::DisarmedProbe> look(inline_::Attachment& attachment,
                                           std::span<const uint64_t> counts,
                                           std::vector<std::string>& problems);
  // All that are taken out, with the counts as they are now.
  [[nodiscard]] std::vector<collect::DisarmedProbe> disarmed(
      pid_t process, std::span<const uint64_t> counts) const;

 private:
  struct Probe {
    std::set<std::string> names;
    std::vector<uint64_t> bodies;
    bool is_disarmed = false;
    bool is_left = false;  // It could not be taken out.
  };
  [[nodiscard]] static collect::DisarmedProbe describe(const Probe& probe, pid_t process,
                                                       uint64_t exhausted);

  std::map<uint32_t, Probe> probes_;  // By word.
};

}  // namespace clew::engine
