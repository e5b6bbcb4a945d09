// SPDX-License-Identifier: Apache-2.0
// Which interpreters are in a process, and the calls of scripts that its threads are in.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <sys/types.h>

#include "recorder/snap.h"
#include "target/process.h"

namespace clew::engine {

class ScriptReader {
 public:
  // Looks for interpreters in modules that it has not seen yet, so that nobody waits for it later:
  // some 2 ms for a program of 10,000 names.
  void read(const std::vector<target::ProcessModule>& modules);

  // Of the snap's threads, which stand or wait.
  void add_scripts(const std::vector<target::ProcessModule>& modules, recorder::Snap& snap) const;

 private:
  struct Found {
    size_t kind = 0;               // In recorder::interpreter_kinds().
    std::vector<uint64_t> places;  // Of its exports, in the file; 0: none.
  };
  std::map<std::string, std::vector<Found>> found_;  // By path and build-id.
};

}  // namespace clew::engine
