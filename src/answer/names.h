// SPDX-License-Identifier: Apache-2.0
// What words of events and cells mean that only the tracer can tell. One for each member of a
// session. `process` is abi::SlotControl::process, `index` that of a site's names.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "aggregate/value.h"
#include "answer/owner.h"
#include "query/query.h"

namespace clew::answer {

class Names {
 public:
  Names() = default;
  Names(const Names&) = delete;
  Names& operator=(const Names&) = delete;
  virtual ~Names() = default;

  virtual std::string function(uint64_t index) = 0;
  virtual std::string module(uint64_t index) = 0;
  virtual std::string probe(uint64_t index) = 0;
  virtual int64_t pid(uint64_t process) = 0;
  virtual std::string process_name(uint64_t process) = 0;
  virtual std::string thread_name(uint64_t process, uint64_t tid) = 0;
  virtual std::string host() = 0;
  // The machine's name as the process sees it.
  virtual std::string node_name(uint64_t process) = 0;
  // `word`: the process; of events of the kernel's programs what these note, the number of the
  // thread's control group, and for the user the uid.
  virtual const Owner& owner(query::Field field, uint64_t word) = 0;
  // That word, of a process: for calls that are open, of which no program has noted anything.
  virtual uint64_t owner_word(query::Field /*field*/, uint64_t process) { return process; }
  // Of where a call returns to, which is named by the call; and of an instruction itself.
  virtual std::string symbol(uint64_t address) = 0;
  virtual std::string code(uint64_t address) { return symbol(address); }
  // Of its words (abi/query_window.h). Only events of the kernel's programs have some.
  virtual aggregate::Stack stack(std::span<const uint64_t> /*words*/) { return {}; }
};

}  // namespace clew::answer
