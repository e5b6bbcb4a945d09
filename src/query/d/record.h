// SPDX-License-Identifier: Apache-2.0
// What a clause records in a firing: src/plan/d lays it out and makes the programs that fill it,
// src/output/d prints it. Offsets count from the start of the record (abi::MachineRecordHeader).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "query/d/functions.h"
#include "query/d/types.h"

namespace clew::query::d {

enum class FieldKind : uint8_t {
  Integer,        // size_bytes 1, 2, 4, 8
  String,         // NUL-terminated in size_bytes
  Bytes,          // tracemem, trace of an array or struct; print()'s of `type`
  KernelStack,    // words, 0 ends
  UserStack,      // pid, then words, 0 ends
  KernelAddress,  // sym, mod, func: 8 bytes
  UserAddress,    // usym, umod, ufunc, uaddr: pid, address: 16 bytes
};

struct RecordField {
  FieldKind kind = FieldKind::Integer;
  uint32_t offset_bytes = 0;
  uint32_t size_bytes = 8;
  bool is_signed = false;
  TypeId type = kNoType;         // As the checker saw it.
  Action action = Action::None;  // Which of sym, mod, usym, …, stack, ustack, jstack it was.
  std::string text{};            // Of its expression, as print() gives it.
};

// One action of the body, in its order. `flag_offset_bytes` is a byte that is 1 when it was
// executed (a branch not taken leaves it 0).
struct RecordedAction {
  Action action = Action::None;
  uint32_t flag_offset_bytes = 0;
  std::vector<RecordField> fields;
  std::optional<uint32_t> format;      // index in Script::formats
  std::vector<uint32_t> aggregations;  // printa, clear, trunc, normalize, denormalize
};

struct RecordLayout {
  uint32_t size_bytes = 0;  // 0: the clause records nothing (it only aggregates or assigns).
  // An empty body: a row without data. `actions` is empty and size_bytes that of the header.
  std::vector<RecordedAction> actions;
};

// How a part of a key is kept in the table, where hashing and comparing it costs time at each
// firing. Texts that all clauses take from the same built-in variable need few words.
enum class StoredForm : uint8_t {
  Whole,        // As the field is.
  CommandName,  // execname: kCommandNameBytes.
  ProbeName,    // probeprov and its like: 8 bytes, where the session's names have it.
};
inline constexpr uint32_t kCommandNameBytes = 16;  // TASK_COMM_LEN

struct StoredField {
  StoredForm form = StoredForm::Whole;
  uint32_t offset_bytes = 0;
  uint32_t size_bytes = 8;  // A multiple of 8.
};

// The key of an aggregation: as it is printed, and as an entry of its table has it.
struct KeyLayout {
  std::vector<RecordField> fields;  // Integers take 8 bytes each, extended by their own sign.
  uint32_t size_bytes = 0;
  std::vector<StoredField> stored{};  // By field.
  uint32_t stored_bytes = 0;
};

}  // namespace clew::query::d
