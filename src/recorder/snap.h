// SPDX-License-Identifier: Apache-2.0
// A snap: what is known of a process at one moment, in one file. Sections, each with its length;
// all numbers little-endian. The digest finds damage, not malice: a reader takes nothing for
// granted, and checks lengths and counts.
//
//     magic 8, version 4, sections 4, digest 32 (SHA-256 of what follows), then
//     {type 4, flags 4, offset 8, size 8} for each
//
//     Reason    signal 4, code 4, thread 4, trigger 4, address 8, time 8 (ns since 1970)
//     Process   pid 4, words 4, then the command's words, each ended by 0
//     Modules   count 4, 0 4, then for each: load bias 8, copy 8 (address), code size 8,
//               cursor 4, first id 4, ids 4, loops 1, front end 1, 0 2, digest 32, build-id and
//               path, each length 4 and bytes, count 4 of known imports, and for each slot 8, own
//               function 8
//     Threads   count 4, 0 4, then for each: thread 4, slot 4 (none: 2^32 - 1), user_regs_struct
//     Lobes     count 4, 0 4, then for each: slot 4, thread 4 (the last owner), cursor 8 (as in
//               memory), address 8 of the lobe, 64 KiB of words
//     Calls     for each thread of Threads, in their order: called from 8
//     Condition the text of the query (policy.h); only where there is one
//     Times     two moments, where the recording began and that of the snap: ticks 8 (of the time
//               stamp counter), time 8 (ns since 1970); then for each module of Modules, in their
//               order, count 4, 0 4 of calls with Time records, and for each slot 8, where 4
//               (Stamped), transfer 4 (stamps.h)
//     Scripts   of interpreters, only where there are any: count 4, and for each: loop 8 (address),
//               name and problem, each length 4 and bytes; count 4 of functions, and for each name
//               and file; count 4 of stacks, and for each: thread 4, interpreter 4, whole 4, count
//               4 of calls, and for each: function 4, line 4, loop's first 4 (scripts.h)
//     Streams   forked 8 (ticks); network, length 4 and bytes; count 4, then for each connection:
//     descriptor 4,
//               sent 8, received 8, own address and the peer's, each length 4 and bytes
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sys/user.h>

#include "abi/recorder.h"
#include "base/error.h"
#include "recorder/recorded_module.h"
#include "recorder/scripts.h"

namespace clew::recorder {

inline constexpr uint32_t kNoSlot = UINT32_MAX;

enum class SnapTrigger : uint32_t {
  Event = 0,      // A signal, a row of a query, or somebody has asked for it.
  Exit = 1,       // The process ends by itself.
  Heartbeat = 2,  // It has recorded nothing for a while.
};

struct SnapReason {
  int32_t signal = 0;  // 0: it was asked for, or is of a query; and the process ran on.
  int32_t code = 0;    // siginfo_t's; of an exit its status, of a heartbeat for how many ms.
  // That got it, that ends the process, or that the query's row is about, if that is known.
  int32_t thread = 0;
  SnapTrigger trigger = SnapTrigger::Event;
  uint64_t address = 0;  // si_addr.
  uint64_t time_ns = 0;
};

struct SnapModule {
  uint64_t load_bias = 0;
  uint64_t copy_address = 0;
  uint64_t code_size = 0;
  Recipe recipe;
  uint32_t id_count = 0;  // 0: it is not recorded, and has no copy.
  Digest digest{};
  std::string build_id;  // Lower-case hex.
  std::string path;
};

struct SnapThread {
  int32_t thread = 0;
  uint32_t slot = kNoSlot;
  user_regs_struct registers{};
  // The return address in a copy, of one that is in code without records; 0: not known.
  uint64_t called_from = 0;
};

struct SnapLobe {
  uint32_t slot = 0;
  int32_t thread = 0;
  uint64_t cursor = 0;  // Of the newest word, as far as memory says: a register may know more.
  uint64_t address = 0;
  std::vector<uint32_t> words;  // abi::kLobeWords.
};

// A TCP connection as it was at the moment of the snap.
struct SnapStream {
  uint32_t descriptor = 0;
  uint64_t sent = 0;      // Bytes that the process has given it since it began,
  uint64_t received = 0;  // and has taken from it.
  std::string own;        // "127.0.0.1:6379", "[::1]:80".
  std::string peer;
};

// A moment by two clocks; both 0 where the first one cannot be read.
struct ClockPair {
  uint64_t ticks = 0;  // Of the time stamp counter.
  uint64_t time_ns = 0;
};

struct Snap {
  SnapReason reason;
  std::string condition;  // The query that it was taken for; empty: none.
  int32_t pid = 0;
  std::vector<std::string> command;
  std::vector<SnapModule> modules;
  std::vector<SnapThread> threads;
  std::vector<SnapLobe> lobes;
  // The boot and the network namespace in which addresses of streams are alike; empty: not known.
  std::string network;
  std::vector<SnapStream> streams;
  // When the process, or one that it was forked from, last forked: before that a stream may have
  // had two of them. By the time stamp counter; 0: never.
  uint64_t forked = 0;
  ClockPair began;
  ClockPair taken;
  Scripts scripts;
  // No part of its bytes: of one that was read from a bundle, the folder of its files (bundle.h).
  std::string files;
};

// Without folders.
inline std::string_view file_of(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

// "SIGSEGV"; "signal 40" where there is no name.
std::string signal_name(int signal);

// The file is made anew, for its owner alone. Errors: Io, also when there is one, or a link; then
// no file is left.
Expected<void> write_snap(const std::string& path, const Snap& snap);

// Of a file, or of a bundle's folder. Errors: Io; Refused when it is none, or is cut or damaged.
Expected<Snap> read_snap(const std::string& path);
// The same from bytes, for tests.
std::vector<uint8_t> snap_bytes(const Snap& snap);
Expected<Snap> parse_snap(std::span<const uint8_t> bytes);
// A snap of what follows the digest, whatever that is.
std::vector<uint8_t> with_header(uint32_t sections, const std::vector<uint8_t>& rest);

}  // namespace clew::recorder
