// SPDX-License-Identifier: Apache-2.0
// How other programs are started: as a shell would start them.
#pragma once

#include <signal.h>
#include <spawn.h>

namespace clew {

// The tracer blocks the signals that it takes from a descriptor; its children have them again.
class SpawnAttributes {
 public:
  SpawnAttributes() {
    sigset_t none;
    (void)sigemptyset(&none);
    (void)posix_spawnattr_init(&attributes_);
    (void)posix_spawnattr_setsigmask(&attributes_, &none);
    (void)posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK);
  }
  ~SpawnAttributes() { (void)posix_spawnattr_destroy(&attributes_); }
  SpawnAttributes(const SpawnAttributes&) = delete;
  SpawnAttributes& operator=(const SpawnAttributes&) = delete;
  // In a process group of its own: what a terminal sends to ours it does not get.
  void leave_group() {
    (void)posix_spawnattr_setpgroup(&attributes_, 0);
    (void)posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  }
  [[nodiscard]] const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_{};
};

}  // namespace clew
