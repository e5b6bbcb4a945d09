// SPDX-License-Identifier: Apache-2.0
// What members of a cluster tell one another, as values, as bytes and back. The bytes of one
// message are always the same. What is read may be anybody's: it is an error, or a message that
// keeps the rules below and writes back as it was; it takes memory in proportion to the bytes.
//
//     u32 magic "CLWM"   u32 CRC-32C of all behind it   u16 version   u16 kind   the members
//
// Little endian, without padding. An enumerator is its number, a bool one byte; a text, bytes, a
// list or a map its u32 count and what it holds, of a map in the order of its keys. Whatever
// changes in a member changes the version: only the same version is read, but for what is kept in
// stores, files and keys.
//
// Rules: names (of nodes, queries, roots) are words of subjects; ranges of panes are not empty and
// ascend with a gap between two; texts
// of queries and chunks have their limits.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "cluster/bus.h"

namespace clew::cluster {

inline constexpr uint16_t kMessageVersion = 5;
// What is kept is the same from this version on: only Status, NodeQuery and Partial have changed.
inline constexpr uint16_t kKeptVersion = 3;
inline constexpr size_t kQueryTextMax = 64 << 10;
inline constexpr size_t kChunkBytesMax = 512 << 10;
inline constexpr uint32_t kChunksMax = 2048;  // Of 512 KiB: one whole is at most 1 GiB.

using Digest = std::array<std::byte, 32>;  // SHA-256.
using Pane = int64_t;                      // Its number, as stream::Panes counts.
inline constexpr Pane kNoPane = std::numeric_limits<Pane>::min();

// One life of a node: where it started, and when.
struct Incarnation {
  std::array<std::byte, 16> boot_id{};
  uint64_t start_ns = 0;
  auto operator<=>(const Incarnation&) const = default;
};

struct PaneRange {
  Pane first = 0;
  Pane last = 0;
  bool operator==(const PaneRange&) const = default;
};

inline constexpr PaneRange kAllPanes = {.first = std::numeric_limits<Pane>::min(),
                                        .last = std::numeric_limits<Pane>::max()};

// Panes that a node should have counted and that nobody has. From kNoPane on: a root before may
// have them in its store, where it is away, and whoever was told such a pane whole has all of it.
struct NodeGap {
  std::string node{};
  PaneRange panes{};
  bool operator==(const NodeGap&) const = default;
};

// A part of some bytes that are too many for one message (chunks.h).
struct Chunk {
  uint32_t index = 0;
  uint32_t count = 1;
  uint64_t whole_bytes = 0;
  uint32_t whole_crc = 0;
  Bytes bytes{};
  bool operator==(const Chunk&) const = default;
};

struct QueryLimits {
  uint64_t keys_max = 0;
  uint64_t partial_bytes_max = 0;
  uint64_t spill_bytes_max = 0;
  bool operator==(const QueryLimits&) const = default;
};

// How a root gives what it merges: all panes as one, when the query ends; each pane, and again,
// whole, when more of it comes; or each pane once, where tables have the window of each event in
// their first key (query/window.h), and what comes late goes with the next pane; or the same of
// single events (answer/event_table.h), of which nobody needs the sum.
enum class Gives : uint8_t { AtEnd, Panes, Windows, Events };

// What a node need not keep any more: of one life of it, this pane and all before it are merged and
// safe.
struct SafePanes {
  std::string query{};
  uint64_t revision = 0;
  Incarnation incarnation{};
  Pane mark = 0;
  bool operator==(const SafePanes&) const = default;
};

// Who wants a query (signing.h): of a message that is not signed the key is zero.
struct Signature {
  std::array<std::byte, 32> key{};  // Ed25519, the public one.
  int64_t issued_ns = 0;            // Of the time of day: from when
  int64_t expires_ns = 0;           // to when it holds.
  Digest rest{};                    // Of what was asked beside, which nodes do not get.
  std::array<std::byte, 64> bytes{};
  bool operator==(const Signature&) const = default;
};

// What it is over; nobody sends that.
struct SignedQuery {
  std::string tenant{};
  std::string query{};
  bool is_wanted = true;
  bool is_standing = false;
  std::string text{};
  std::vector<std::string> name_patterns{};
  std::map<std::string, std::string> labels{};
  int64_t width_ns = 1;
  Signature signature{};  // Without its bytes.
};

// ctl.all, ctl.N: what the root wants of one query; without a query, as the answer to a beat, only
// the revision of all that is wanted and the root's time. A node that has another revision reads
// key `want`.
struct Control {
  uint64_t want_revision = 0;
  int64_t time_ns = 0;
  std::string query{};
  uint64_t revision = 0;
  bool is_wanted = false;
  bool is_standing = false;                     // Also when nobody listens.
  bool has_store = false;                       // Its root keeps what it has merged.
  std::string asker{};                          // Ask::asker
  Digest digest{};                              // Of the text.
  std::string text{};                           // Empty: who does not have it reads it.
  std::vector<std::string> name_patterns{};     // Of processes, beside what the text says.
  std::map<std::string, std::string> labels{};  // A node that has not all of these is not meant.
  int64_t epoch_ns = 0;
  int64_t width_ns = 1;
  Gives gives = Gives::Panes;
  uint64_t lease_ns = 0;
  QueryLimits limits{};
  // As the answer to a beat: the log that is there (LogEnds), as the one before may be lost with
  // all that it had, and queries of which the root lacks NodeQuery::answered.
  uint64_t log = 0;
  Incarnation incarnation{};  // Whose beat it answers: two nodes may have one name.
  std::vector<std::string> unknown{};
  std::vector<SafePanes> safe{};  // Of the node, also those of its lives before.
  Signature signature{};          // Of whoever asked, as it was renewed last.
  bool operator==(const Control&) const = default;
};

enum class NodeState : uint8_t { Offered, Armed, Refused, Draining, Closed, Lost, Expired };

struct NodeQuery {
  std::string query{};
  uint64_t revision = 0;
  NodeState state = NodeState::Offered;
  Pane closed = kNoPane;   // This and all before it; at first none.
  Digest schema{};         // Of what is answered:
  std::string answered{};  // its text in normal form; empty where the root has it.
  std::string reason{};    // Why it was refused or lost.
  std::vector<PaneRange> lost{};
  // Of the log: of the last that was sent. Who has not read that far does not know these panes.
  uint64_t sequence = 0;
  std::vector<PaneRange> merged{};  // Each is counted in its last pane. They ascend.
  // Of the partials that were sent and that nobody has said are safe: the last one's pane, or none.
  Pane last = kNoPane;
  Pane safe = kNoPane;  // Of those that a root has said are safe: the last one's pane, or none.
  bool operator==(const NodeQuery&) const = default;
};

// The key `want`: all that is wanted. The key `want.Q` has the Control.
struct WantedQuery {
  std::string query{};
  uint64_t revision = 0;
  bool operator==(const WantedQuery&) const = default;
};
struct Want {
  uint64_t revision = 0;
  std::vector<WantedQuery> queries{};
  bool operator==(const Want&) const = default;
};

// The key `mark.Q`, of a root that has no store: what it has given, and whoever asked has got. The
// next one goes on from there, and knows which lives of nodes there were.
struct MemberMark {
  std::string node{};
  Incarnation incarnation{};
  Pane first = kNoPane;  // That was given, or none.
  Pane mark = kNoPane;
  bool operator==(const MemberMark&) const = default;
};
struct Marks {
  uint64_t revision = 0;
  Pane given = kNoPane;
  std::vector<MemberMark> members{};
  bool operator==(const Marks&) const = default;
};

// The key `root`: who leads, put anew each second.
struct Leader {
  std::string root{};
  bool operator==(const Leader&) const = default;
};

// beat.N
struct Beat {
  std::string node{};
  Incarnation incarnation{};
  std::string version{};  // Of clew.
  std::map<std::string, std::string> labels{};
  uint64_t want_revision = 0;
  uint64_t log = 0;  // In which is what it has sent.
  uint64_t spill_bytes = 0;
  int64_t clock_offset_ns = 0;  // The root's time less its own.
  std::vector<NodeQuery> queries{};
  bool operator==(const Beat&) const = default;
};

// part.Q.S.N: a node's table of one pane (aggregate/table_bytes.h), losses and all.
struct Partial {
  std::string query{};
  uint64_t revision = 0;
  std::string node{};
  Incarnation incarnation{};
  uint64_t log = 0;  // As the node knows it: all before this one is in that, too.
  Pane pane = 0;
  // Of the one before it in the same life; none where all before it are safe. Whoever has that one
  // lacks none between: what the log says is not enough, as its servers may lose what they had
  // confirmed.
  Pane previous = kNoPane;
  // As NodeQuery::safe: whoever lacks some of these lacks what another root has.
  Pane safe = kNoPane;
  Chunk table{};
  bool operator==(const Partial&) const = default;
};

// A partial in a node's file (spill_folder.h); the table is whole.
struct Spilled {
  std::string tenant{};
  std::string node{};
  std::string query{};
  uint64_t revision = 0;
  Incarnation incarnation{};
  Pane pane = 0;
  Bytes table{};
  bool operator==(const Spilled&) const = default;
};

// again.N: which partials the root misses.
struct Again {
  std::string query{};
  uint64_t revision = 0;
  std::vector<PaneRange> panes{};
  bool operator==(const Again&) const = default;
};

// row.Q: the rows of a pane, in place of those of any lower version; as a table with its losses.
struct RowUpdate {
  std::string query{};
  uint64_t revision = 0;
  std::string root{};   // Who numbers
  uint64_t number = 0;  // the message, from 1 on: whoever asked says which it has.
  Pane pane = 0;
  uint64_t version = 0;
  bool is_final = false;
  bool lacks_nodes = false;  // That had begun to count, and are not heard any more.
  Chunk table{};
  bool operator==(const RowUpdate&) const = default;
};

// ask: what is wanted of the root, again and again while whoever asks listens.
struct Ask {
  std::string query{};  // A word that nobody else has.
  bool is_wanted = true;
  bool is_standing = false;
  std::string asker{};  // Who asks, as a word that nobody else has; to end it: empty, or the same.
  std::string text{};
  std::vector<std::string> name_patterns{};
  std::map<std::string, std::string> labels{};
  int64_t width_ns = 1;  // Of panes.
  Gives gives = Gives::Panes;
  int64_t install_ns = 1'000'000'000;  // So long nodes are waited for; others join later.
  std::string root{};                  // Of whose RowUpdates
  uint64_t has_rows = 0;               // all up to this number have come.
  Signature signature{};               // Over all of this.
  bool operator==(const Ask&) const = default;
};

enum class Phase : uint8_t { Installing, Running, Draining, Done, Failed };

// read: which of the given answers somebody wants to see; without a query, which there are.
struct Read {
  std::string reader{};  // A word that nobody else has: where Found goes.
  uint64_t request = 0;  // What it answers.
  std::string query{};
  uint64_t first = 1;  // Of its intervals, which are counted from 1 on,
  uint64_t last = std::numeric_limits<uint64_t>::max();  // and the last one.
  bool operator==(const Read&) const = default;
};

// found.R: a part of an AnswerList or an AnswerPart.
struct Found {
  uint64_t request = 0;
  Chunk answer{};
  bool operator==(const Found&) const = default;
};

struct AnswerSummary {
  std::string query{};
  Phase phase = Phase::Installing;
  bool is_standing = false;
  uint64_t intervals = 0;  // That are kept.
  int64_t begun_ns = 0;    // Of the time of day: where its first interval begins,
  int64_t given_ns = 0;    // and where its last one ends; both 0 before there is one.
  std::string refused{};   // Why nodes do not answer, in words.
  std::string text{};
  bool operator==(const AnswerSummary&) const = default;
};

struct AnswerList {
  std::vector<AnswerSummary> answers{};
  bool operator==(const AnswerList&) const = default;
};

struct AnswerPane {
  Pane pane = 0;
  uint64_t version = 1;
  Bytes table{};
  bool operator==(const AnswerPane&) const = default;
};

// Some of a query's intervals, in order.
struct AnswerPart {
  bool is_known = true;  // Else nothing else is said.
  Control want{};
  Phase phase = Phase::Installing;
  std::string answered{};  // NodeQuery::answered
  PaneRange given{};       // From the first pane that was given and is kept to the last.
  Pane begun = 0;          // The first that was given at all: interval 1.
  std::vector<AnswerPane> panes{};
  bool is_last = true;              // Of what was asked for nothing is missing.
  Bytes total{};                    // Gives::AtEnd, at the end.
  Bytes losses{};                   // So far, as a table without rows.
  std::vector<std::string> lost{};  // Beside these, in words,
  std::vector<NodeGap> gaps{};      // and by panes.
  bool operator==(const AnswerPart&) const = default;
};

// A reason for which nodes do not answer, and one of these.
struct Refusal {
  std::string reason{};
  std::string node{};
  uint64_t nodes = 0;
  bool operator==(const Refusal&) const = default;
};

// status.Q: what the root says of a query, several times a second.
struct Status {
  std::string query{};
  Phase phase = Phase::Installing;
  std::string reason{};                     // Why it failed.
  std::string answered{};                   // NodeQuery::answered, of whoever was armed first.
  std::string asker{};                      // Whose query it is.
  uint64_t nodes = 0;                       // That are there,
  uint64_t meant = 0;                       // that have the labels,
  uint64_t armed = 0;                       // that count,
  uint64_t silent = 0;                      // and that are not heard any more,
  std::vector<std::string> silent_nodes{};  // some of which are these.
  std::vector<std::string> labels{};        // Where no node is meant, some that nodes have: zone=a.
  std::vector<Refusal> refusals{};
  std::vector<std::string> lost{};  // What the answer lacks, in words,
  std::vector<NodeGap> gaps{};      // and which panes of whom.
  std::string root{};               // Who says it,
  bool has_store = false;           // and whether it has what those before it had merged.
  uint64_t first_row = 1;           // RowUpdate::number of the first that can still come,
  uint64_t rows = 0;                // and of the last that was sent.
  bool operator==(const Status&) const = default;
};

// T is one of Control, Want, Leader, Beat, Partial, Spilled, Again, RowUpdate, Ask,
// Status, Read, Found, AnswerList, AnswerPart.
template <typename T>
[[nodiscard]] Bytes to_bytes(const T& message);

// Refused: another version, or another kind of message. Io: whatever else is wrong.
template <typename T>
[[nodiscard]] Expected<T> read_as(std::span<const std::byte> bytes);
// Of Control, Want, Marks, Spilled: also as versions from kKeptVersion on have written it.
template <typename T>
[[nodiscard]] Expected<T> read_kept_as(std::span<const std::byte> bytes);

}  // namespace clew::cluster
