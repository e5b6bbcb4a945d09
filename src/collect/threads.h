// SPDX-License-Identifier: Apache-2.0
// Which threads live: what the collector must know to free slots of dead ones.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/error.h"

namespace clew::collect {

class Threads {
 public:
  Threads() = default;
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;
  virtual ~Threads() = default;
  // `process` is the index of abi::SlotControl::process, `tid` as gettid() gives it to the target.
  [[nodiscard]] virtual bool alive(uint32_t process, uint32_t tid) const = 0;
  [[nodiscard]] virtual bool process_alive(uint32_t process) const = 0;
};

// The truth from /proc, at the time of the last refresh. When in doubt a thread is alive.
class ProcThreads final : public Threads {
 public:
  // Names the pid of a process index, in the tracer's pid namespace.
  void watch(uint32_t process, int pid);
  // Reads /proc/PID/task of each watched process. Thread ids are translated into the pid namespace
  // of the target (NSpid of /proc/TID/status) when it is not ours.
  void refresh();
  [[nodiscard]] bool alive(uint32_t process, uint32_t tid) const override;
  [[nodiscard]] bool process_alive(uint32_t process) const override;

 private:
  struct Watched {
    int pid = 0;
    bool known = false;  // The last refresh could read it, or saw that it is gone.
    bool gone = false;
    std::unordered_set<uint32_t> tids;
  };
  static void read_tasks(Watched& watched);
  std::map<uint32_t, Watched> watched_;
};

}  // namespace clew::collect
