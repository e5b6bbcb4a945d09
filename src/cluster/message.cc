// SPDX-License-Identifier: Apache-2.0
#include "cluster/message.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "cluster/subject.h"
#include "collect/crc32c.h"
#include "collect/members.h"

namespace clew::cluster {
namespace {

constexpr uint32_t kMessageMagic = 0x4D574C43;  // "CLWM", little endian.
constexpr size_t kCrcOffset = 4;
constexpr size_t kCheckedOffset = 8;

// A message's number in the bytes; other members have none.
template <typename T>
constexpr uint16_t kKindOf = 0;
template <>
constexpr uint16_t kKindOf<Control> = 1;
template <>
constexpr uint16_t kKindOf<Beat> = 2;
template <>
constexpr uint16_t kKindOf<Partial> = 3;
template <>
constexpr uint16_t kKindOf<Again> = 6;
template <>
constexpr uint16_t kKindOf<RowUpdate> = 7;
template <>
constexpr uint16_t kKindOf<Ask> = 8;
template <>
constexpr uint16_t kKindOf<Status> = 9;
template <>
constexpr uint16_t kKindOf<Want> = 10;
template <>
constexpr uint16_t kKindOf<Leader> = 11;
template <>
constexpr uint16_t kKindOf<Spilled> = 12;
template <>
constexpr uint16_t kKindOf<Read> = 13;
template <>
constexpr uint16_t kKindOf<Found> = 14;
template <>
constexpr uint16_t kKindOf<AnswerList> = 15;
template <>
constexpr uint16_t kKindOf<AnswerPart> = 16;
template <>
constexpr uint16_t kKindOf<SignedQuery> = 17;
template <>
constexpr uint16_t kKindOf<Marks> = 18;

// All members of a struct: a new one does not compile until it stands here, too. Those between a
// root and whoever asks.
template <typename T>
auto fields_of_asking(T& value) {
  using Plain = std::remove_const_t<T>;
  if constexpr (std::is_same_v<Plain, Ask>) {
    auto& [query, is_wanted, is_standing, asker, text, name_patterns, labels, width_ns, gives,
           install_ns, root, has_rows, signature] = value;
    return std::tie(query, is_wanted, is_standing, asker, text, name_patterns, labels, width_ns,
                    gives, install_ns, root, has_rows, signature);
  } else if constexpr (std::is_same_v<Plain, SignedQuery>) {
    auto& [tenant, query, is_wanted, is_standing, text, name_patterns, labels, width_ns,
           signature] = value;
    return std::tie(tenant, query, is_wanted, is_standing, text, name_patterns, labels, width_ns,
                    signature);
  } else if constexpr (std::is_same_v<Plain, Signature>) {
    auto& [key, issued_ns, expires_ns, rest, bytes] = value;
    return std::tie(key, issued_ns, expires_ns, rest, bytes);
  } else if constexpr (std::is_same_v<Plain, Refusal>) {
    auto& [reason, node, nodes] = value;
    return std::tie(reason, node, nodes);
  } else if constexpr (std::is_same_v<Plain, Status>) {
    auto& [query, phase, reason, answered, asker, nodes, meant, armed, silent, silent_nodes, labels,
           refusals, lost, gaps, root, has_store, first_row, rows] = value;
    return std::tie(query, phase, reason, answered, asker, nodes, meant, armed, silent,
                    silent_nodes, labels, refusals, lost, gaps, root, has_store, first_row, rows);
  } else if constexpr (std::is_same_v<Plain, NodeGap>) {
    auto& [node, panes] = value;
    return std::tie(node, panes);
  } else if constexpr (std::is_same_v<Plain, Read>) {
    auto& [reader, request, query, first, last] = value;
    return std::tie(reader, request, query, first, last);
  } else if constexpr (std::is_same_v<Plain, Found>) {
    auto& [request, answer] = value;
    return std::tie(request, answer);
  } else if constexpr (std::is_same_v<Plain, AnswerSummary>) {
    auto& [query, phase, is_standing, intervals, begun_ns, given_ns, refused, text] = value;
    return std::tie(query, phase, is_standing, intervals, begun_ns, given_ns, refused, text);
  } else if constexpr (std::is_same_v<Plain, AnswerList>) {
    auto& [answers] = value;
    return std::tie(answers);
  } else if constexpr (std::is_same_v<Plain, AnswerPane>) {
    auto& [pane, version, table] = value;
    return std::tie(pane, version, table);
  } else if constexpr (std::is_same_v<Plain, AnswerPart>) {
    auto& [is_known, want, phase, answered, given, begun, panes, is_last, total, losses, lost,
           gaps] = value;
    return std::tie(is_known, want, phase, answered, given, begun, panes, is_last, total, losses,
                    lost, gaps);
  } else {
    static_assert(std::is_same_v<Plain, RowUpdate>);
    auto& [query, revision, root, number, pane, version, is_final, lacks_nodes, table] = value;
    return std::tie(query, revision, root, number, pane, version, is_final, lacks_nodes, table);
  }
}

// The others.
template <typename T>
auto fields_of(T& value) {
  using Plain = std::remove_const_t<T>;
  if constexpr (std::is_same_v<Plain, Incarnation>) {
    auto& [boot_id, start_ns] = value;
    return std::tie(boot_id, start_ns);
  } else if constexpr (std::is_same_v<Plain, PaneRange>) {
    auto& [first, last] = value;
    return std::tie(first, last);
  } else if constexpr (std::is_same_v<Plain, Chunk>) {
    auto& [index, count, whole_bytes, whole_crc, bytes] = value;
    return std::tie(index, count, whole_bytes, whole_crc, bytes);
  } else if constexpr (std::is_same_v<Plain, QueryLimits>) {
    auto& [keys_max, partial_bytes_max, spill_bytes_max] = value;
    return std::tie(keys_max, partial_bytes_max, spill_bytes_max);
  } else if constexpr (std::is_same_v<Plain, Control>) {
    auto& [want_revision, time_ns, query, revision, is_wanted, is_standing, has_store, asker,
           digest, text, name_patterns, labels, epoch_ns, width_ns, gives, lease_ns, limits, log,
           incarnation, unknown, safe, signature] = value;
    return std::tie(want_revision, time_ns, query, revision, is_wanted, is_standing, has_store,
                    asker, digest, text, name_patterns, labels, epoch_ns, width_ns, gives, lease_ns,
                    limits, log, incarnation, unknown, safe, signature);
  } else if constexpr (std::is_same_v<Plain, NodeQuery>) {
    auto& [query, revision, state, closed, schema, answered, reason, lost, sequence, merged, last,
           safe] = value;
    return std::tie(query, revision, state, closed, schema, answered, reason, lost, sequence,
                    merged, last, safe);
  } else if constexpr (std::is_same_v<Plain, Beat>) {
    auto& [node, incarnation, version, labels, want_revision, log, spill_bytes, clock_offset_ns,
           queries] = value;
    return std::tie(node, incarnation, version, labels, want_revision, log, spill_bytes,
                    clock_offset_ns, queries);
  } else if constexpr (std::is_same_v<Plain, Partial>) {
    auto& [query, revision, node, incarnation, log, pane, previous, safe, table] = value;
    return std::tie(query, revision, node, incarnation, log, pane, previous, safe, table);
  } else if constexpr (std::is_same_v<Plain, Spilled>) {
    auto& [tenant, node, query, revision, incarnation, pane, table] = value;
    return std::tie(tenant, node, query, revision, incarnation, pane, table);
  } else if constexpr (std::is_same_v<Plain, SafePanes>) {
    auto& [query, revision, incarnation, mark] = value;
    return std::tie(query, revision, incarnation, mark);
  } else if constexpr (std::is_same_v<Plain, Again>) {
    auto& [query, revision, panes] = value;
    return std::tie(query, revision, panes);
  } else if constexpr (std::is_same_v<Plain, WantedQuery>) {
    auto& [query, revision] = value;
    return std::tie(query, revision);
  } else if constexpr (std::is_same_v<Plain, Want>) {
    auto& [revision, queries] = value;
    return std::tie(revision, queries);
  } else if constexpr (std::is_same_v<Plain, MemberMark>) {
    auto& [node, incarnation, first, mark] = value;
    return std::tie(node, incarnation, first, mark);
  } else if constexpr (std::is_same_v<Plain, Marks>) {
    auto& [revision, given, members] = value;
    return std::tie(revision, given, members);
  } else if constexpr (std::is_same_v<Plain, Leader>) {
    auto& [root] = value;
    return std::tie(root);
  } else {
    return fields_of_asking(value);
  }
}

constexpr NodeState last_of(NodeState) {
  return NodeState::Expired;
}
constexpr Gives last_of(Gives) {
  return Gives::Events;
}
constexpr Phase last_of(Phase) {
  return Phase::Failed;
}

struct MessageShape {
  template <typename T>
  static auto members(T& value) {
    return fields_of(value);
  }
  template <typename T>
  static constexpr T last(T value) {
    return last_of(value);
  }
};
using MessageWriter = collect::MemberWriter<MessageShape>;
using MessageReader = collect::MemberReader<MessageShape>;

tl::unexpected<Error> no_message(std::string_view why) {
  return fail(ErrorCode::Io, fmt::format("the bytes are no message of a cluster: {}", why));
}

Expected<void> check_message_header(MessageReader& reader, uint16_t kind, uint16_t oldest) {
  const bool is_message = reader.take<uint32_t>() == kMessageMagic && !reader.failed();
  if (!is_message) return no_message("they do not begin as one");
  const auto crc = reader.take<uint32_t>();
  if (reader.failed() || crc != collect::crc32c(reader.rest()))
    return no_message("they are not as they were written");
  const auto version = reader.take<uint16_t>();
  if (!reader.failed() && (version < oldest || version > kMessageVersion)) {
    return fail(ErrorCode::Refused,
                fmt::format("the message has version {}; this version of clew reads {}", version,
                            kMessageVersion));
  }
  const auto found = reader.take<uint16_t>();
  if (reader.failed()) return no_message("they end early");
  if (found == kind) return {};
  return fail(ErrorCode::Refused, fmt::format("the message is of kind {} and not {}", found, kind));
}

// --- the rules -----------------------------------------------------------------------------------

bool is_name(const std::string& name) {
  return check_name(name).has_value();
}

bool are_right(const std::vector<PaneRange>& panes) {
  for (size_t i = 0; i < panes.size(); ++i) {
    if (panes[i].first > panes[i].last) return false;
    // Compared without an overflow: the last one before is below `first`.
    if (i > 0 && (panes[i].first <= panes[i - 1].last || panes[i].first - 1 == panes[i - 1].last))
      return false;
  }
  return true;
}

bool is_right(const Chunk& chunk) {
  return chunk.count >= 1 && chunk.count <= kChunksMax && chunk.index < chunk.count &&
         chunk.bytes.size() <= kChunkBytesMax &&
         chunk.whole_bytes <= uint64_t{chunk.count} * kChunkBytesMax &&
         chunk.bytes.size() <= chunk.whole_bytes;
}

bool is_right(const Control& message) {
  const bool has_query = !message.query.empty();
  return (!has_query || is_name(message.query)) && message.text.size() <= kQueryTextMax &&
         message.width_ns >= 1 &&
         std::all_of(message.safe.begin(), message.safe.end(),
                     [](const SafePanes& each) { return is_name(each.query); });
}

// As above, but for the gap.
bool follow_each_other(const std::vector<PaneRange>& panes) {
  for (size_t i = 0; i < panes.size(); ++i) {
    if (panes[i].first > panes[i].last) return false;
    if (i > 0 && panes[i].first <= panes[i - 1].last) return false;
  }
  return true;
}

bool is_right(const NodeQuery& query) {
  return is_name(query.query) && are_right(query.lost) && follow_each_other(query.merged);
}

bool is_right(const Beat& message) {
  return is_name(message.node) &&
         std::all_of(message.queries.begin(), message.queries.end(),
                     [](const NodeQuery& query) { return is_right(query); });
}

bool is_right(const Partial& message) {
  const bool is_behind = message.previous < message.pane && message.safe < message.pane;
  return is_name(message.query) && is_name(message.node) && is_behind && is_right(message.table);
}

bool is_right(const Spilled& message) {
  return is_name(message.query) && is_name(message.node) && is_name(message.tenant);
}

bool is_right(const Again& message) {
  return is_name(message.query) && are_right(message.panes);
}

bool is_right(const Want& message) {
  return std::all_of(message.queries.begin(), message.queries.end(),
                     [](const WantedQuery& each) { return is_name(each.query); });
}

bool is_right(const Marks& message) {
  return std::all_of(message.members.begin(), message.members.end(),
                     [](const MemberMark& each) { return is_name(each.node); });
}

bool is_right(const Leader& message) {
  return is_name(message.root);
}

bool is_right(const Ask& message) {
  return is_name(message.query) && message.text.size() <= kQueryTextMax && message.width_ns >= 1;
}

bool is_right(const Read& message) {
  return is_name(message.reader) && (message.query.empty() || is_name(message.query));
}

bool is_right(const Found& message) {
  return is_right(message.answer);
}

bool is_right(const AnswerList& message) {
  return std::all_of(message.answers.begin(), message.answers.end(),
                     [](const AnswerSummary& each) { return is_name(each.query); });
}

// What may be missing can be of some node.
bool are_right(const std::vector<NodeGap>& gaps) {
  return std::all_of(gaps.begin(), gaps.end(), [](const NodeGap& gap) {
    const bool is_of_some = gap.node.empty() && gap.panes.first == kNoPane;
    return (is_name(gap.node) || is_of_some) && gap.panes.first <= gap.panes.last;
  });
}

bool is_right(const AnswerPart& message) {
  const bool is_in_order = std::is_sorted(
      message.panes.begin(), message.panes.end(),
      [](const AnswerPane& one, const AnswerPane& other) { return one.pane < other.pane; });
  return is_in_order && are_right(message.gaps);
}

bool is_right(const Status& message) {
  return is_name(message.query) && are_right(message.gaps);
}

bool is_right(const RowUpdate& message) {
  return is_name(message.query) && is_right(message.table);
}

template <typename T>
Expected<T> read_since(std::span<const std::byte> bytes, uint16_t oldest) {
  MessageReader reader(bytes);
  CLEW_TRY(check_message_header(reader, kKindOf<T>, oldest));
  auto message = reader.take<T>();
  if (reader.failed()) return no_message("they end early or have unknown values");
  if (!reader.rest().empty()) return no_message("something follows");
  if (!is_right(message)) return no_message("they break a rule");
  return message;
}

}  // namespace

template <typename T>
Bytes to_bytes(const T& message) {
  MessageWriter writer;
  writer.put(kMessageMagic);
  writer.put(uint32_t{0});  // The CRC, when the rest is there.
  writer.put(kMessageVersion);
  writer.put(kKindOf<T>);
  writer.put(message);
  Bytes bytes = writer.take();
  const uint32_t crc = collect::crc32c(std::span(bytes).subspan(kCheckedOffset));
  std::memcpy(&bytes[kCrcOffset], &crc, sizeof crc);
  return bytes;
}

template <typename T>
Expected<T> read_as(std::span<const std::byte> bytes) {
  return read_since<T>(bytes, kMessageVersion);
}

template <typename T>
Expected<T> read_kept_as(std::span<const std::byte> bytes) {
  return read_since<T>(bytes, kKeptVersion);
}

template Bytes to_bytes(const Control&);
template Bytes to_bytes(const Beat&);
template Bytes to_bytes(const Partial&);
template Bytes to_bytes(const Spilled&);
template Bytes to_bytes(const Again&);
template Bytes to_bytes(const RowUpdate&);
template Bytes to_bytes(const Leader&);
template Bytes to_bytes(const Marks&);
template Bytes to_bytes(const Want&);
template Bytes to_bytes(const Status&);
template Bytes to_bytes(const Ask&);
template Bytes to_bytes(const AnswerPart&);
template Bytes to_bytes(const AnswerList&);
template Bytes to_bytes(const Found&);
template Bytes to_bytes(const Read&);
template Bytes to_bytes(const SignedQuery&);
template Expected<Control> read_as(std::span<const std::byte>);
template Expected<Beat> read_as(std::span<const std::byte>);
template Expected<Partial> read_as(std::span<const std::byte>);
template Expected<Spilled> read_as(std::span<const std::byte>);
template Expected<Again> read_as(std::span<const std::byte>);
template Expected<RowUpdate> read_as(std::span<const std::byte>);
template Expected<Leader> read_as(std::span<const std::byte>);
template Expected<Marks> read_as(std::span<const std::byte>);
template Expected<Want> read_as(std::span<const std::byte>);
template Expected<Status> read_as(std::span<const std::byte>);
template Expected<Ask> read_as(std::span<const std::byte>);
template Expected<AnswerPart> read_as(std::span<const std::byte>);
template Expected<AnswerList> read_as(std::span<const std::byte>);
template Expected<Found> read_as(std::span<const std::byte>);
template Expected<Read> read_as(std::span<const std::byte>);
template Expected<Control> read_kept_as(std::span<const std::byte>);
template Expected<Want> read_kept_as(std::span<const std::byte>);
template Expected<Marks> read_kept_as(std::span<const std::byte>);
template Expected<Spilled> read_kept_as(std::span<const std::byte>);

}  // namespace clew::cluster
