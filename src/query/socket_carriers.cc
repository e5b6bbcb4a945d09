// SPDX-License-Identifier: Apache-2.0
#include "query/socket_carriers.h"

#include <algorithm>
#include <array>
#include <iterator>

#include <fmt/format.h>

#include "base/assert.h"
#include "query/diagnostic.h"
#include "query/parse.h"
#include "query/type_source.h"

namespace clew::query {

using causal::Onward;
using causal::Passage;

// --- profiles ------------------------------------------------------------------------------------

namespace {

struct OnwardName {
  std::string_view name;
  Onward onward;
  std::string_view meaning;
};
constexpr std::array<OnwardName, 5> kOnwards = {
    {{"last", Onward::Last, "writes onward for the message read last"},
     {"oldest", Onward::Oldest,
      "writes onward for the oldest message that nothing was written for"},
     {"blocking", Onward::Blocking,
      "writes onward for the message read last, also when it has waited"},
     {"slice", Onward::Slice, "writes onward for the only message between two waits for events"},
     {"none", Onward::None, "only its hand-overs say for which request it writes onward"}}};

const OnwardName& row_of(Onward onward) {
  const auto* const found =
      std::find_if(kOnwards.begin(), kOnwards.end(),
                   [onward](const auto& each) { return each.onward == onward; });
  CLEW_ASSERT(found != kOnwards.end());
  return *found;
}
constexpr std::array<std::string_view, 2> kReplies = {"alternating", "none"};
constexpr std::array<std::string_view, 2> kPipes = {"ignored", "followed"};

template <size_t N>
Expected<size_t> index_of(std::string_view value, std::string_view key,
                          const std::array<std::string_view, N>& names, std::string_view list) {
  const auto found = std::find(names.begin(), names.end(), value);
  if (found != names.end()) return static_cast<size_t>(found - names.begin());
  return fail(ErrorCode::InvalidQuery,
              fmt::format("'{}' is {}, not '{}'{}", key, list, value, did_you_mean(value, names)));
}

}  // namespace

std::string_view name_of(Onward onward) {
  return row_of(onward).name;
}

std::string text_of(const causal::Profile& profile) {
  return fmt::format("onward {}, reply {}{} ({})", name_of(profile.onward),
                     kReplies[profile.alternates ? 0 : 1],
                     profile.follows_pipes ? ", pipes followed" : "", causal::name_of(profile.how));
}

std::string describe(const causal::Profile& profile) {
  return fmt::format("{}{}{} ({})", row_of(profile.onward).meaning,
                     profile.alternates ? "" : ", and answers in no order",
                     profile.follows_pipes ? ", and reads requests from pipes" : "",
                     causal::name_of(profile.how));
}

Expected<causal::Profile> parse_profile(const ProgramText& text) {
  std::array<std::string_view, kOnwards.size()> names{};
  std::transform(kOnwards.begin(), kOnwards.end(), names.begin(),
                 [](const OnwardName& each) { return each.name; });
  constexpr std::array<std::string_view, 2> kHows = {"recipe", "heuristic"};
  const size_t onward =
      CLEW_TRY(index_of(text.onward, "onward", names, "last, oldest, blocking, slice or none"));
  const size_t reply = CLEW_TRY(index_of(text.reply, "reply", kReplies, "alternating or none"));
  const size_t how = CLEW_TRY(index_of(text.how, "how", kHows, "recipe or heuristic"));
  const size_t pipes = CLEW_TRY(index_of(text.pipes, "pipes", kPipes, "followed or ignored"));
  return causal::Profile{.onward = kOnwards[onward].onward,
                         .alternates = reply == 0,
                         .how = how == 0 ? causal::EdgeClass::Recipe : causal::EdgeClass::Heuristic,
                         .follows_pipes = pipes == 1};
}

// --- what is asked of the kernel -----------------------------------------------------------------

namespace {

constexpr std::string_view kSock = "((struct sock*)e.sk)";

// An address of IPv4, also where it is one in IPv6 (::ffff:a.b.c.d; RFC 4291, section 2.5.5.2).
std::string address(std::string_view v6, std::string_view v4) {
  const std::string words = fmt::format("{}->__sk_common.{}.in6_u.u6_addr32", kSock, v6);
  return fmt::format(
      "({1}->__sk_common.skc_family == 10 && {0}[2] != 0xffff0000) ? "
      "(((uint64_t){0}[0] << 32 | {0}[1]) * 31) ^ ((uint64_t){0}[2] << 32 | {0}[3]) : "
      "(uint64_t){1}->__sk_common.{2}",
      words, kSock, v4);
}

// The own port is not skc_num, which is 0 once the other end has closed.
// A listening socket's backlog is copied to those that it accepts (sk_clone_lock(), Linux 5.10 to
// 6.18); those that connect have none.
std::string passage(std::string_view tracepoint, std::string_view position,
                    std::string_view condition) {
  return fmt::format(
      "from e in tracepoint(\"{0}\") where e.ret > 0{1} && {4}->sk_protocol == 6 && {4}->sk_type "
      "== 1 && ({4}->__sk_common.skc_family == 2 || "
      "{4}->__sk_common.skc_family == 10) select "
      "(uint64_t)e.sk as socket, {2} as remote, {3} as local, "
      "(uint64_t){4}->__sk_common.skc_dport | "
      "(uint64_t)((struct inet_sock*)e.sk)->inet_sport << 16 | "
      "(uint64_t){4}->__sk_common.skc_net.net->ns.inum << 32 as ports, "
      "(uint64_t)((struct tcp_sock*)e.sk)->{5} << 32 | (uint64_t)e.ret as bytes, "
      "(uint64_t)({4}->sk_max_ack_backlog != 0) as accepted",
      tracepoint, condition, address("skc_v6_daddr", "skc_daddr"),
      address("skc_v6_rcv_saddr", "skc_rcv_saddr"), kSock, position);
}

constexpr std::string_view kUnix = "((struct unix_sock*)e.sk)";
constexpr std::string_view kUnixPeer = "((struct unix_sock*)((struct unix_sock*)e.sk)->peer)";

std::string inode_of(std::string_view sock) {
  return fmt::format("((struct socket_alloc*){}->sk_socket)->vfs_inode.i_ino", sock);
}

// Whoever has accepted a connection shares the address of the socket that listened; whoever
// connects has none, or one for itself. A pair has none.
std::string has_accepted(std::string_view own, std::string_view peer, std::string_view bit) {
  return fmt::format(
      "({0}->addr == 0 ? (uint64_t)0 : {1}->addr == 0 ? {2} : "
      "{0}->addr->refcnt.refs.counter > 1 ? {2} : (uint64_t)0)",
      own, peer, bit);
}

// Streams count bytes, and sockets that keep messages apart count these. Datagrams may come from
// others than the peer.
std::string unix_passage(std::string_view tracepoint, std::string_view unread,
                         std::string_view condition) {
  return fmt::format(
      "from e in tracepoint(\"{0}\") where {2}->__sk_common.skc_family == 1 && e.ret > 0{1} && "
      "{2}->sk_type != 2 && {3}->peer != 0 select "
      "(uint64_t)e.sk as socket, (uint64_t){3}->peer as peer, "
      "(uint64_t)(uint32_t){4} | ({3}->peer->sk_socket == 0 ? (uint64_t)0 : (uint64_t){5} << 32) "
      "as numbers, "
      "({2}->sk_type == 1 ? (uint64_t)e.ret : (uint64_t)1) | {6} | (uint64_t)({7}) << 32 | {8} "
      "as bytes",
      tracepoint, condition, kSock, kUnix, inode_of(kSock),
      inode_of(fmt::format("{}->peer", kUnix)), has_accepted(kUnix, kUnixPeer, "(uint64_t)1 << 31"),
      unread, has_accepted(kUnixPeer, kUnix, "(uint64_t)1 << 63"));
}

// Those that event loops wait in.
constexpr std::array<std::string_view, 7> kWaits = {
    "epoll_wait", "epoll_pwait", "epoll_pwait2", "poll", "ppoll", "select", "pselect6"};

bool has_tracepoint(const std::string& name, TypeSource* types) {
  Source source;
  source.kind = SourceKind::Tracepoint;
  source.function = name;
  const auto known = types->parameters(source);
  return known && !known->empty();
}

// MSG_PEEK is 2, MSG_ERRQUEUE 0x2000, MSG_OOB 1: what is read out of turn is of nobody.
std::string moves(std::string_view flags) {
  return flags.empty() ? "" : fmt::format(" && (e.{} & 0x2003) == 0", flags);
}

// A system call that moves bytes of a socket, with the argument that the socket is, and where it
// has flags. Those of many messages at a time say not how many bytes.
struct SocketCall {
  std::string_view name;
  Act act;
  std::string_view flags{};
};
constexpr std::array<SocketCall, 12> kSocketCalls = {{{"read.0", Act::Receive},
                                                      {"readv.0", Act::Receive},
                                                      {"preadv2.0", Act::Receive},
                                                      {"recvfrom.0", Act::Receive, "fourth"},
                                                      {"recvmsg.0", Act::Receive, "third"},
                                                      {"write.0", Act::Send},
                                                      {"writev.0", Act::Send},
                                                      {"pwritev2.0", Act::Send},
                                                      {"sendto.0", Act::Send},
                                                      {"sendmsg.0", Act::Send},
                                                      {"sendfile64.0", Act::Send},
                                                      {"splice.2", Act::Send}}};

// Where bytes are seen to pass.
struct PassingPlace {
  std::string tracepoint;
  std::string condition;
};

// A tracepoint's arguments cost less than its record; both have the same names. Linux before 6.3
// has neither, and what system calls return says it.
std::vector<PassingPlace> places_of(Act act, TypeSource* types) {
  const bool sends = act == Act::Send;
  const std::string name = sends ? "sock_send_length" : "sock_recv_length";
  const std::string condition = moves(sends ? "" : "flags");
  if (types != nullptr && has_tracepoint(fmt::format("{}{}", kRawGroup, name), types))
    return {{fmt::format("{}{}", kRawGroup, name), condition}};
  if (types == nullptr || has_tracepoint("sock:" + name, types))
    return {{"sock:" + name, condition}};
  std::vector<PassingPlace> all;
  for (const SocketCall& call : kSocketCalls) {
    if (call.act == act)
      all.push_back({fmt::format("{}{}", kSocketGroup, call.name), moves(call.flags)});
  }
  return all;
}

}  // namespace

namespace {

struct Asked {
  Act act;
  std::string text;
  Medium medium = Medium::Tcp;
};

Expected<std::vector<Carrier>> carriers_of(const Asked& asked, TypeSource* types) {
  const Cause cause{
      .act = asked.act, .medium = asked.medium, .key = {}, .how = causal::EdgeClass::Sound};
  return carriers_at({.name = "what the kernel knows of sockets", .text = asked.text}, cause,
                     {.vocabulary = nullptr, .types = types});
}

// Of all places where it is so.
template <typename Text>
Expected<std::vector<Carrier>> carriers_of(Act act, Medium medium, TypeSource* types, Text text) {
  std::vector<Carrier> all;
  for (const PassingPlace& place : places_of(act, types)) {
    std::vector<Carrier> some = CLEW_TRY(carriers_of({act, text(place), medium}, types));
    std::move(some.begin(), some.end(), std::back_inserter(all));
  }
  return all;
}

// What waits in a stream is a number since Linux 6.17; before, it is known when nothing does.
Expected<std::vector<Carrier>> receive_of_unix(TypeSource* types) {
  const std::string queue = fmt::format("{}->sk_receive_queue.qlen", kSock);
  const auto receive = [&](const std::string& of_stream) {
    const std::string unread =
        fmt::format("({}->sk_type == 1 ? {} : (uint64_t){})", kSock, of_stream, queue);
    return carriers_of(Act::Receive, Medium::Unix, types, [&](const PassingPlace& place) {
      return unix_passage(place.tracepoint, unread, place.condition);
    });
  };
  auto counted = receive(fmt::format("(uint64_t){}->inq_len", kUnix));
  if (counted) return counted;
  return receive(fmt::format("({} == 0 ? (uint64_t)0 : (uint64_t){})", queue, kUnreadIsUnknown));
}

}  // namespace

namespace {

// None where the kernel does not know its UNIX sockets' type (a module of its own).
std::vector<Carrier> carriers_of_unix(TypeSource* types) {
  auto all = receive_of_unix(types);
  auto send = carriers_of(Act::Send, Medium::Unix, types, [](const PassingPlace& place) {
    return unix_passage(place.tracepoint, std::to_string(kUnreadIsUnknown), place.condition);
  });
  if (!all || !send) return {};
  std::move(send->begin(), send->end(), std::back_inserter(*all));
  return std::move(*all);
}

Expected<std::vector<Carrier>> carriers_of_tcp(TypeSource* types) {
  std::vector<Carrier> all =
      CLEW_TRY(carriers_of(Act::Send, Medium::Tcp, types, [](const PassingPlace& place) {
        return passage(place.tracepoint, "write_seq", place.condition);
      }));
  std::vector<Carrier> receive =
      CLEW_TRY(carriers_of(Act::Receive, Medium::Tcp, types, [](const PassingPlace& place) {
        return passage(place.tracepoint, "copied_seq", place.condition);
      }));
  std::move(receive.begin(), receive.end(), std::back_inserter(all));
  return all;
}

}  // namespace

namespace {

// A system call that moves bytes of a pipe, with the argument that the pipe is.
struct PipeCall {
  std::string_view name;
  Act act;
  bool is_moved = false;
};
constexpr std::array<PipeCall, 11> kPipeCalls = {{{"read.0", Act::Receive},
                                                  {"readv.0", Act::Receive},
                                                  {"preadv2.0", Act::Receive},
                                                  {"splice.0", Act::Receive, true},
                                                  {"write.0", Act::Send},
                                                  {"writev.0", Act::Send},
                                                  {"pwritev2.0", Act::Send},
                                                  {"vmsplice.0", Act::Send},
                                                  {"sendfile64.0", Act::Send},
                                                  {"splice.2", Act::Send, true},
                                                  {"tee.1", Act::Send, true}}};

// Numbers of a FIFO are its file system's; PIPEFS_MAGIC is 0x50495045 (magic.h).
std::string pipe_passage(const PipeCall& call) {
  const bool reads = call.act == Act::Receive;
  return fmt::format(
      "from e in tracepoint(\"{}{}\") select (uint64_t)e.pipe | {} as pipe, "
      "(uint64_t)(uint32_t)e.inode->i_ino | (e.inode->i_sb->s_magic == 0x50495045 ? (uint64_t)0 : "
      "(uint64_t)1 << 31) as number, (uint64_t)e.ret | (uint64_t){} << 32{} as bytes",
      kPipeGroup, call.name, reads ? 1 : 0, reads ? "e.unread" : std::to_string(kUnreadIsUnknown),
      call.is_moved ? " | (uint64_t)1 << 31" : "");
}

}  // namespace

Expected<std::vector<Carrier>> carriers_of_pipes(TypeSource* types) {
  std::vector<Carrier> all;
  for (const PipeCall& call : kPipeCalls) {
    std::vector<Carrier> some =
        CLEW_TRY(carriers_of({call.act, pipe_passage(call), Medium::Pipe}, types));
    std::move(some.begin(), some.end(), std::back_inserter(all));
  }
  return all;
}

Expected<std::vector<Carrier>> carriers_of_sockets(TypeSource* types) {
  // TCP_SYN_SENT is 2.
  std::vector<Asked> asked = {
      {Act::Connect,
       "from e in tracepoint(\"sock:inet_sock_set_state\") where e.newstate == 2 && "
       "e.protocol == 6 select (uint64_t)e.skaddr as socket"}};
  for (const std::string_view name : kWaits) {
    asked.push_back(
        {Act::Wait,
         fmt::format("from e in tracepoint(\"syscalls:sys_enter_{}\") select e.pid", name)});
  }
  std::vector<Carrier> all = carriers_of_unix(types);
  std::vector<Carrier> tcp = CLEW_TRY(carriers_of_tcp(types));
  std::move(tcp.begin(), tcp.end(), std::back_inserter(all));
  for (const Asked& each : asked) {
    std::vector<Carrier> some = CLEW_TRY(carriers_of(each, types));
    if (each.act == Act::Wait) some[0].keys.clear();
    // Only what interrupts, and so connects nothing, comes while the program runs.
    if (each.act == Act::Connect) some[0].source.ignores_nested = true;
    std::move(some.begin(), some.end(), std::back_inserter(all));
  }
  return all;
}

// --- and what it answers -------------------------------------------------------------------------

namespace {

// 127.0.0.0/8 and ::1, which each namespace has for itself.
bool is_loopback(uint64_t address) {
  constexpr uint64_t kOwnV6 = 0x01000000;
  return address == kOwnV6 || (address <= UINT32_MAX && (address & 0xff) == 127);
}

}  // namespace

namespace {

Passage passage_of_unix(causal::Thread thread, std::span<const uint64_t> keys) {
  CLEW_ASSERT(keys.size() >= kUnixKeys);
  const auto key = [keys](UnixKey which) { return keys[static_cast<size_t>(which)]; };
  constexpr uint64_t kIsServers = 1U << 31;
  const uint64_t numbers = key(UnixKey::Numbers);
  const uint64_t sent = key(UnixKey::Bytes) & UINT32_MAX;
  const uint64_t waiting = key(UnixKey::Bytes) >> 32;
  Passage passage;
  passage.thread = thread;
  passage.socket = key(UnixKey::Socket);
  passage.out = {.from = passage.socket, .to = key(UnixKey::Peer)};
  passage.bytes.end = static_cast<uint32_t>(sent & ~kIsServers);
  const bool own_is_servers = (sent & kIsServers) != 0;
  const bool peer_is_servers = (waiting & kIsServers) != 0;
  passage.is_of_pair = own_is_servers == peer_is_servers;
  passage.accepted = own_is_servers && !peer_is_servers;
  Passage::Count& count = passage.count.emplace();
  count.own = static_cast<uint32_t>(numbers);
  count.peers = static_cast<uint32_t>(numbers >> 32);
  const auto unread = static_cast<uint32_t>(waiting & ~kIsServers);
  if (unread != kUnreadIsUnknown) count.unread = unread;
  return passage;
}

// Its ends are told apart by numbers, as those of a pair of sockets are.
Passage passage_of_pipe(causal::Thread thread, std::span<const uint64_t> keys) {
  CLEW_ASSERT(keys.size() >= kPipeKeys);
  const auto key = [keys](PipeKey which) { return keys[static_cast<size_t>(which)]; };
  constexpr uint64_t kIsMoved = 1U << 31;
  const uint64_t bytes = key(PipeKey::Bytes);
  Passage passage;
  passage.thread = thread;
  passage.socket = key(PipeKey::Pipe);
  passage.out = {.from = passage.socket, .to = passage.socket ^ 1};
  passage.bytes.end = static_cast<uint32_t>(bytes & (kIsMoved - 1));
  passage.is_of_pipe = true;
  passage.is_moved = (bytes & kIsMoved) != 0;
  Passage::Count& count = passage.count.emplace();
  count.own = static_cast<uint32_t>(key(PipeKey::Number));
  count.peers = count.own;
  const auto unread = static_cast<uint32_t>(bytes >> 32);
  if (unread != kUnreadIsUnknown) count.unread = unread;
  return passage;
}

}  // namespace

Passage passage_of(causal::Thread thread, Medium medium, std::span<const uint64_t> keys) {
  if (medium == Medium::Unix) return passage_of_unix(thread, keys);
  if (medium == Medium::Pipe) return passage_of_pipe(thread, keys);
  CLEW_ASSERT(keys.size() >= kSocketKeys);
  const auto key = [keys](SocketKey which) { return keys[static_cast<size_t>(which)]; };
  const uint64_t ports = key(SocketKey::Ports);
  const auto peer = __builtin_bswap16(static_cast<uint16_t>(ports));
  const auto own = __builtin_bswap16(static_cast<uint16_t>(ports >> 16));
  const uint64_t local = key(SocketKey::Local);
  const uint64_t remote = key(SocketKey::Remote);
  const bool stays = is_loopback(local) || local == remote;  // In its namespace.
  const auto end = static_cast<uint32_t>(key(SocketKey::Bytes) >> 32);
  const auto length = static_cast<uint32_t>(key(SocketKey::Bytes));
  return {.thread = thread,
          .socket = key(SocketKey::Socket),
          .out = {.from = local,
                  .to = remote,
                  .from_port = own,
                  .to_port = peer,
                  .space = stays ? static_cast<uint32_t>(ports >> 32) : 0},
          .bytes = {.begin = end - length, .end = end},
          .accepted = key(SocketKey::Accepted) != 0};
}

}  // namespace clew::query
