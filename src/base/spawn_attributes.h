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
  [[nodiscard]] const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_{};
};

}  // namespace clew
