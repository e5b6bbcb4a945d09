// SPDX-License-Identifier: Apache-2.0
// The flight recorder's words: what probes in copied functions write into a thread's lobe, and
// readers find there after the thread was killed at any instruction.
//
//     bit 31                 0: the record of a DAG
//     bits 30..11            its id; 0 and the largest are none
//     bits 10..0             path bits
//
//     bit 31                 1: a word of an extended record. Its first and its last word, alike:
//     bits 30..24            ExtendedRecord
//     bits 23..16            how many words it has, with both
//     bits 15..0             a value; of a Start, one in each of its two words
//
// Of a module that is recorded by its compiler's guards (recorder/guards.h), an id stands for
// 2 KiB of text and the path bits for a byte of it: together the return address of the guard's
// call. Behind each such word is a Frame, which says where the stack pointer was.
//
// A lobe is a ring of kLobeWords. A DAG's head writes its record and a zero behind it by one store
// of 8 bytes, so the newest word is the one in front of the zero; an extended record's first word
// is written last, over that zero.
#pragma once

#include <cstdint>

namespace clew::abi {

inline constexpr uint32_t kPathBits = 11;
inline constexpr uint32_t kDagIdBits = 20;
inline constexpr uint32_t kDagIdMax = (1U << kDagIdBits) - 2;  // The smallest is 1.
inline constexpr uint32_t kLobeWords = 16'384;
inline constexpr uint32_t kLobeBytes = kLobeWords * sizeof(uint32_t);
inline constexpr uint32_t kRecordBytes = sizeof(uint32_t);
// From lobe to lobe: a record's zero may stand in the page behind.
inline constexpr uint32_t kLobeStrideLog2 = 17;
inline constexpr uint64_t kLobeStride = uint64_t{1} << kLobeStrideLog2;
inline constexpr uint32_t kExtendedBit = 1U << 31;

static_assert(1 + kDagIdBits + kPathBits == 32);
static_assert(kLobeBytes == 1U << 16, "A 16-bit addition wraps the cursor.");

enum class ExtendedRecord : uint8_t {
  Start = 1,   // The thread claimed the lobe.
  End = 2,     // It ended.
  Time = 3,    // The time stamp counter.
  Signal = 4,  // A handler begins.
  Throw = 5,   // An exception is thrown.
  Sync = 6,    // A message to or from another logical thread.
  Module = 7,  // What ids mean has changed.
  Out = 8,     // The activation goes on in the original.
  Switch = 9,  // The records go on in another lobe.
  Gap = 10,    // Records were lost.
  Frame = 11,  // One word: type, and 24 bits of a stack pointer in units of 8 bytes.
};

// Signal: written by who traces the thread, in front of its handler. Its value is the signal, and
// with kCursorInMemory what the thread writes behind the handler may go into the last record of
// that. Two words say where in a copy control was, or where the call is that has not come back: 31
// bits each, the lower ones first; 0: that is not known.
inline constexpr uint32_t kSignalWords = 4;
inline constexpr uint16_t kCursorInMemory = 1U << 15;
inline constexpr uint32_t kExtendedWordBits = 31;

constexpr bool is_extended(uint32_t word) {
  return (word & kExtendedBit) != 0;
}
constexpr uint32_t dag_record(uint32_t id) {
  return id << kPathBits;
}
constexpr uint32_t dag_id(uint32_t record) {
  return (record & ~kExtendedBit) >> kPathBits;
}
constexpr uint32_t path_bits(uint32_t record) {
  return record & ((1U << kPathBits) - 1);
}
// Neither a word that was never written, nor a reserved id.
constexpr bool is_dag_record(uint32_t word) {
  return !is_extended(word) && dag_id(word) != 0 && dag_id(word) <= kDagIdMax;
}

constexpr uint32_t extended_word(ExtendedRecord type, uint8_t words, uint16_t value) {
  return kExtendedBit | static_cast<uint32_t>(type) << 24 | static_cast<uint32_t>(words) << 16 |
         value;
}
// A Time record, in front of what ran later: the value of its first and last word, then the words
// behind the first, have the time stamp counter's bits 15..0, 46..16, 63..47. What two moments have
// written has two values: a handler that comes between the stores leaves no record that looks
// whole. The word in front of the last is a note:
//
//     bit 30                 0: in front of a call
//     bits 29..27            what that does, a Transfer
//     bit 24                 1: and leaves the bytes where they are (MSG_PEEK)
//     bits 23..0             with which descriptor
//
//     bit 30                 1: behind such a call
//     bits 29..0             what it has come back with
inline constexpr uint8_t kTimeWords = 5;
inline constexpr unsigned kTimeLowBits = 16;
inline constexpr unsigned kTimeMiddleBits = 31;

enum class Transfer : uint8_t {
  None = 0,
  Sends = 1,  // As many bytes as it says,
  Receives = 2,
  SendsSome = 3,  // or of a number that it does not say.
  ReceivesSome = 4,
  Closes = 5,
  Connects = 6,
  Accepts = 7,  // What comes back is the new descriptor.
  Peeks = 8,    // As many as it says, and they stay: a Receives with kNoteOfPeeking.
};
inline constexpr uint32_t kNoteOfResult = 1U << 30;
inline constexpr unsigned kResultBits = 30;
inline constexpr unsigned kTransferShift = 27;
inline constexpr uint32_t kNoteOfPeeking = 1U << 24;
inline constexpr unsigned kDescriptorBits = 24;

constexpr uint32_t note_in_front(Transfer transfer, uint32_t descriptor) {
  return kExtendedBit | static_cast<uint32_t>(transfer) << kTransferShift |
         (descriptor & ((1U << kDescriptorBits) - 1));
}
constexpr Transfer transfer_of(uint32_t note) {
  const uint32_t transfer = (note & ~kExtendedBit) >> kTransferShift & 7;
  return (note & kNoteOfPeeking) != 0 ? Transfer::Peeks : static_cast<Transfer>(transfer);
}
constexpr uint32_t descriptor_of(uint32_t note) {
  return note & ((1U << kDescriptorBits) - 1);
}
// A number with a sign.
constexpr int32_t result_of(uint32_t note) {
  return static_cast<int32_t>(note << (32 - kResultBits)) >> (32 - kResultBits);
}
constexpr uint32_t note_behind(uint32_t result) {
  return kExtendedBit | kNoteOfResult | (result & ((1U << kResultBits) - 1));
}

constexpr ExtendedRecord extended_type(uint32_t word) {
  return static_cast<ExtendedRecord>(word >> 24 & 0x7f);
}
// A Frame's.
inline constexpr unsigned kFrameBits = 24;
inline constexpr uint32_t kFrameWord = kExtendedBit | static_cast<uint32_t>(ExtendedRecord::Frame)
                                                          << kFrameBits;
constexpr bool is_frame(uint32_t word) {
  return (word & ~((1U << kFrameBits) - 1)) == kFrameWord;
}
constexpr uint32_t extended_words(uint32_t word) {
  return word >> 16 & 0xff;
}
constexpr uint16_t extended_value(uint32_t word) {
  return static_cast<uint16_t>(word);
}

}  // namespace clew::abi
