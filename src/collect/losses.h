// SPDX-License-Identifier: Apache-2.0
// What an answer lacks, by cause. Loss is a result, not an error: a Losses value travels with every
// table and is printed beside it. Reader fills the counters that live in shared memory, the engine
// fills what it knows of sites and of lost sources.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "collect/cost.h"

namespace clew::collect {

// Names of causes, as JSON prints them. Sources: abi::RegionHeader, abi::TargetPage.
inline constexpr std::string_view kMissedReentry = "reentry";      // Hit while a probe ran.
inline constexpr std::string_view kMissedAbandoned = "abandoned";  // Left by longjmp.
inline constexpr std::string_view kMissedRecords = "records_full";
inline constexpr std::string_view kMissedUnpaired = "unpaired";  // Exit without recorded entry.
inline constexpr std::string_view kMissedFuel = "fuel";
// Hits that were not looked at: those of their probe were out of fuel eight times.
inline constexpr std::string_view kMissedLeftAlone = "left_alone";
inline constexpr std::string_view kMissedUnreadable = "unreadable";
inline constexpr std::string_view kMissedTailCall = "tail_call";
inline constexpr std::string_view kMissedNoSlot = "no_slot";
inline constexpr std::string_view kMissedForks = "forks_muted";  // Children, not hits.
// The same with --follow: of more than abi::kProcessesMax, or where system calls are filtered.
inline constexpr std::string_view kMissedFollowed = "forks_not_followed";
// The same of sites that are uprobes, which stay with the process that they were set in.
inline constexpr std::string_view kMissedUprobes = "forks_without_uprobes";
inline constexpr std::string_view kDroppedRing = "ring_full";
inline constexpr std::string_view kDroppedTable = "table_full";
// Bytes of a ring that did not parse: the traced program wrote over it.
inline constexpr std::string_view kDroppedDamaged = "damaged_bytes";
// Of queries with joins by cause: hits of their sources in threads that work for no request.
inline constexpr std::string_view kMissedNoRequest = "no_request";
// A thread took over something that nobody had handed over: it works for no request from then on.
inline constexpr std::string_view kMissedNoContext = "no_context";
// Joins in place: parts of a request came together that both had counted, perhaps the same events.
inline constexpr std::string_view kMissedOverlap = "overlap";
// As often, a probe was missed that could have handed something over.
inline constexpr std::string_view kMissedContexts = "contexts_forgotten";
// Messages whose token is none, or was sent by nobody, as far as is known; that two requests have
// sent; that too many have received.
inline constexpr std::string_view kMissedBadToken = "bad_token";
inline constexpr std::string_view kMissedUnknownToken = "unknown_token";
inline constexpr std::string_view kMissedSentTwice = "sent_twice";
inline constexpr std::string_view kMissedWornToken = "worn_token";
// Begins and hand-overs that are known less well than the query asks for.
inline constexpr std::string_view kMissedWeak = "weak_cause";
// Two requests that a thread was to join; it stays in its own.
inline constexpr std::string_view kMissedOtherRequest = "other_request";
// Messages whose request could be one of several: what they bring or take along is not known.
inline constexpr std::string_view kMissedAmbiguous = "ambiguous";
// Messages on UNIX sockets, mostly of connections that are older than the session: which bytes are
// whose is known when a call has seen how many there are.
inline constexpr std::string_view kMissedUnplaced = "unplaced";
// Messages that were read by programs of which no vocabulary says what they do with them.
inline constexpr std::string_view kMissedNoProgram = "no_program";
// Events that are joined with nothing, as others were lost near them.
inline constexpr std::string_view kMissedBesideLoss = "beside_loss";
// In Losses::causal.
inline constexpr std::string_view kCausalRequests = "requests";
// Events in whose request nothing was there to be joined with them.
inline constexpr std::string_view kCausalUnjoined = "unjoined";
// Messages that others had received before.
inline constexpr std::string_view kCausalAgain = "received_again";
// That were not over: too much was kept for them.
inline constexpr std::string_view kDroppedRequests = "requests_full";
inline constexpr std::string_view kDroppedJoinRows = "join_rows";
// Rows of counts that came too late for a window of time, which was closed.
inline constexpr std::string_view kDroppedLate = "late";
// The same where too much was kept for windows.
inline constexpr std::string_view kDroppedWindowRows = "window_rows";
// Events of a node of a cluster for which an interval had no room.
inline constexpr std::string_view kDroppedPane = "interval_full";
// Of clusters: amounts of vectors, or of terms, beyond those that are kept; and what is no amount.
inline constexpr std::string_view kDroppedVectors = "cluster_vectors";
inline constexpr std::string_view kDroppedTerms = "cluster_terms";
inline constexpr std::string_view kDroppedAmounts = "cluster_amounts";
// Of queries with joins by time: what was forgotten before its time, as too much was held; events
// that had too many partners; and those that came when theirs could be forgotten.
inline constexpr std::string_view kDroppedHeld = "held_full";
inline constexpr std::string_view kDroppedPartners = "join_partners";
inline constexpr std::string_view kMissedTooLate = "late_for_join";
// Of what is outstanding: ends of what had begun before the session, or unseen; begins with a key
// whose end had not been seen; and those for which there was no room.
inline constexpr std::string_view kMissedEndedUnseen = "ended_unseen";
inline constexpr std::string_view kMissedBegunAgain = "begun_again";
inline constexpr std::string_view kDroppedOutstanding = "outstanding_full";
// Frames of a file of events that did not have their checksum.
// Of a file of events: those for which the disk had no room.
inline constexpr std::string_view kDroppedNoRoom = "no_room";
inline constexpr std::string_view kDroppedFrames = "damaged_frames";

struct RefusedSite {
  std::string function{};
  std::string kind{};    // entry, exit, offset, line, exception.
  std::string reason{};  // As `clew doctor` and the summary print it.
  bool operator==(const RefusedSite&) const = default;
};

// "by uprobe: 3 sites (memcpy, getpid, kill); a hit costs a microsecond or more instead of
// nanoseconds"
std::string describe_uprobes(const std::vector<RefusedSite>& uprobes);

// A probe that was taken out because its hits ran out of fuel; or all probes of a function, because
// they cost more than was allowed.
struct DisarmedProbe {
  std::string probe{};     // "entry of spin"
  int32_t process = 0;     // Pid.
  uint64_t exhausted = 0;  // Its hits that ran out of fuel.
  // Of --max-overhead, else 0: what it allows, and what the function's probes took of the
  // process's CPU time, 0 to 1; and when they were gone, since the session's begin.
  double bound = 0;
  double share = 0;
  double after_ms = 0;
  bool operator==(const DisarmedProbe&) const = default;
};
// For people.
std::string describe(const DisarmedProbe& disarmed);

// A process that the session was to trace, and does not.
struct LeftOut {
  int32_t process = 0;  // Pid.
  std::string reason{};
  bool operator==(const LeftOut&) const = default;
};

// Calls that entered and had not returned at the end, as far as the query's probes pair them.
struct OpenCalls {
  uint64_t count = 0;
  uint64_t oldest_ns = 0;  // Since its entry; 0: not known.
  bool operator==(const OpenCalls&) const = default;
};

// Counters by cause; a cause that did not happen is absent. The cause of a cause is its text above.
using Causes = std::map<std::string, uint64_t, std::less<>>;

struct Losses {
  Causes missed{};                  // Hits that did not run.
  Causes dropped{};                 // Records that were not stored.
  std::vector<std::string> lost{};  // Sources that went away, one sentence each.
  std::vector<RefusedSite> refused{};
  std::vector<RefusedSite> uprobes{};  // No loss: what has a uprobe, and why no jump.
  std::vector<DisarmedProbe> disarmed{};
  std::vector<LeftOut> left_out{};
  OpenCalls open{};  // No loss, but what an answer about returns does not show.
  // Nor is this: functions of which a call may leave by a jump to another function, where a query
  // about `elapsed` takes it for over.
  std::vector<std::string> left_by_jump{};
  // Nor this: requests, and what joined them, by how it is known ("explicit", "recipe", …).
  Causes causal{};
  // Nor this: what programs of joins in place count where that is asked for, by
  // plan::DutyCounter.
  std::vector<uint64_t> duties{};
  uint64_t sites = 0;      // Armed.
  double attach_ms = 0;    // From command to armed.
  double stopped_ms = 0;   // The longest time a process stood still.
  uint64_t processes = 0;  // That were traced.
  double window_ms = 0;    // What is counted happened in this time; 0: not known, or one process.
  Cost cost{};             // No loss.

  // Adds the counters, appends the lists; times: the maximum.
  void merge(const Losses& other);
  // True when nothing is missing from the answer (refused sites and muted forks included; open
  // calls are none of it).
  [[nodiscard]] bool empty() const;
  bool operator==(const Losses&) const = default;
};

// Takes away what was counted earlier.
void subtract(Causes& causes, const Causes& earlier);
// Adds `count` to a cause, unless it is 0.
void count_cause(Causes& causes, std::string_view cause, uint64_t count);
// Adds each to that of the same place.
void add_words(std::vector<uint64_t>& sums, const std::vector<uint64_t>& words);
// The sentence for people: "hits missed: a probe was already running on the thread".
std::string_view describe_cause(std::string_view cause, uint64_t count);

}  // namespace clew::collect
