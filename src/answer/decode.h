// SPDX-License-Identifier: Apache-2.0
// Words of events and cells as values, with the names that one member's tracer knows.
#pragma once

#include <cstdint>
#include <span>

#include "aggregate/value.h"
#include "answer/names.h"
#include "query/query.h"

namespace clew::answer {

class Decoder {
 public:
  explicit Decoder(Names& names) : names_(names) {}

  // Enumerations and symbols stay numbers: expressions compute with them. Text takes the memory of
  // what `into` held.
  void decode(const query::Expression& meaning, std::span<const uint64_t> words, uint64_t process,
              aggregate::Value& into);
  // Of a field that only the tracer can name, such as a function by its index; false for others.
  bool name_field(query::Field field, uint64_t word, uint64_t process, aggregate::Value& into);
  // The word of a field of owners, for a process.
  uint64_t process_word(query::Field field, uint64_t process) {
    return names_.owner_word(field, process);
  }
  // As a part of a key: code addresses differ from process to process, names do not.
  void make_key(aggregate::Value& value, const query::Type& type);

 private:
  Names& names_;
};

}  // namespace clew::answer
