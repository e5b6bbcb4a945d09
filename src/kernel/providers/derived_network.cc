// SPDX-License-Identifier: Apache-2.0
// ip, tcp and udp: packets and connections. A probe's arg0 is the packet (struct sk_buff *), arg1
// the socket (struct sock *); 0 where there is none. Translators make the documented args[] of
// them; the headers of a packet are found through it.
#include "kernel/providers/derived.h"

namespace clew::kernel {

namespace {

constexpr std::string_view kPacket = "struct sk_buff *";
constexpr std::string_view kSocket = "struct sock *";
constexpr uint8_t kNothing = constant(0);

// enum tcp_state, net/tcp_states.h
constexpr uint64_t kSynSent = 2;

// Which argument of the attach point is the packet, and which the socket.
struct Places {
  uint8_t packet = kNothing;
  uint8_t socket = kNothing;
};

std::vector<DerivedArgument> common_arguments() {
  return {{kPacket, "pktinfo_t *", 0}, {kSocket, "csinfo_t *", 1}, {kPacket, "ipinfo_t *", 0}};
}

DerivedProbe tcp_probe(std::string_view name, AttachKind kind, std::string_view symbol,
                       Places places) {
  DerivedProbe probe = {.provider = "tcp",
                        .name = name,
                        .kind = kind,
                        .symbol = symbol,
                        .map = {places.packet, places.socket},
                        .arguments = common_arguments()};
  probe.arguments.push_back({kSocket, "tcpsinfo_t *", 1});
  probe.arguments.push_back({kPacket, "tcpinfo_t *", 0});
  return probe;
}

DerivedProbe shown(DerivedProbe probe) {
  probe.is_shown = true;
  return probe;
}

DerivedProbe filtered(DerivedProbe probe, const DerivedFilter& filter) {
  probe.filters.push_back(filter);
  return probe;
}

DerivedProbe ip_probe(std::string_view name, std::string_view function, Places places) {
  DerivedProbe probe = {.provider = "ip",
                        .name = name,
                        .kind = AttachKind::FunctionEntry,
                        .symbol = function,
                        .is_shown = true,
                        .map = {places.packet, places.socket},
                        .arguments = common_arguments()};
  probe.arguments.push_back({kPacket, "ifinfo_t *", 0});
  probe.arguments.push_back({kPacket, "ipv4info_t *", 0});
  probe.arguments.push_back({kPacket, "ipv6info_t *", 0});
  return probe;
}

DerivedProbe udp_probe(std::string_view name, std::string_view function, Places places) {
  DerivedProbe probe = {.provider = "udp",
                        .name = name,
                        .kind = AttachKind::FunctionEntry,
                        .symbol = function,
                        .is_shown = true,
                        .map = {places.packet, places.socket},
                        .arguments = common_arguments()};
  probe.arguments.push_back({kSocket, "udpsinfo_t *", 1});
  probe.arguments.push_back({kPacket, "udpinfo_t *", 0});
  return probe;
}

// Connections: inet_sock_set_state(socket, old, new), tcp_init_transfer(socket, operation, packet)
// when one is established, tcp_receive_reset(socket), tcp_send_reset(socket, packet, reason).
void add_connections(std::vector<DerivedProbe>& probes) {
  const Places state = {.socket = 0};
  probes.push_back(filtered(
      tcp_probe("connect-request", AttachKind::RawTracepoint, "inet_sock_set_state", state),
      {.argument = 2, .mask = UINT32_MAX, .value = kSynSent}));
  const Places established = {.packet = 2, .socket = 0};
  probes.push_back(filtered(
      tcp_probe("connect-established", AttachKind::FunctionEntry, "tcp_init_transfer", established),
      {.argument = 1, .mask = UINT32_MAX, .enumerator = "BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB"}));
  probes.push_back(filtered(
      tcp_probe("accept-established", AttachKind::FunctionEntry, "tcp_init_transfer", established),
      {.argument = 1, .mask = UINT32_MAX, .enumerator = "BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB"}));
  probes.push_back(filtered(
      tcp_probe("connect-refused", AttachKind::RawTracepoint, "tcp_receive_reset", state),
      {.argument = 0, .value = kSynSent, .record = "sock", .member = "__sk_common.skc_state"}));
  probes.push_back(
      filtered(tcp_probe("accept-refused", AttachKind::RawTracepoint, "tcp_send_reset",
                         {.packet = 1, .socket = 0}),
               {.argument = 2, .mask = UINT32_MAX, .enumerator = "SK_RST_REASON_NO_SOCKET"}));
  auto change = tcp_probe("state-change", AttachKind::RawTracepoint, "inet_sock_set_state", state);
  change.map.push_back(1);
  change.map.push_back(2);
  change.arguments.push_back({"int", "tcplsinfo_t *", 2});
  probes.push_back(std::move(change));
}

}  // namespace

std::vector<DerivedProbe> network_probes() {
  std::vector<DerivedProbe> probes;
  add_connections(probes);
  const Places socket_first = {.packet = 1, .socket = 0};
  for (const std::string_view function : {"tcp_v4_do_rcv", "tcp_v6_do_rcv"}) {
    probes.push_back(
        shown(tcp_probe("receive", AttachKind::FunctionEntry, function, socket_first)));
  }
  // Where TCP hands a segment to IP: its IP header is not there yet.
  for (const std::string_view function : {"ip_queue_xmit", "inet6_csk_xmit"}) {
    probes.push_back(shown(tcp_probe("send", AttachKind::FunctionEntry, function, socket_first)));
  }
  probes.push_back(ip_probe("send", "ip_output", {.packet = 2, .socket = 1}));
  probes.push_back(ip_probe("send", "ip6_output", {.packet = 2, .socket = 1}));
  probes.push_back(ip_probe("receive", "ip_local_deliver", {.packet = 0}));
  probes.push_back(ip_probe("receive", "ip6_input", {.packet = 0}));
  probes.push_back(udp_probe("send", "udp_send_skb", {.packet = 0}));
  probes.push_back(udp_probe("send", "udp_v6_send_skb", {.packet = 0}));
  probes.push_back(udp_probe("receive", "udp_queue_rcv_skb", socket_first));
  probes.push_back(udp_probe("receive", "udpv6_queue_rcv_skb", socket_first));
  return probes;
}

}  // namespace clew::kernel
