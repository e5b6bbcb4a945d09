/* SPDX-License-Identifier: Apache-2.0 */
/* Packets and their sockets: pktinfo_t, csinfo_t, ipinfo_t, ifinfo_t, ipv4info_t, ipv6info_t. */
inline int IPPROTO_IP = 0;
inline int IPPROTO_ICMP = 1;
inline int IPPROTO_IGMP = 2;
inline int IPPROTO_TCP = 6;
inline int IPPROTO_UDP = 17;
inline int IPPROTO_IPV6 = 41;
inline int IPPROTO_ROUTING = 43;
inline int IPPROTO_ESP = 50;
inline int IPPROTO_AH = 51;
inline int IPPROTO_ICMPV6 = 58;
inline int IPPROTO_OSPF = 89;
inline int IPPROTO_SCTP = 132;
inline int IPPROTO_RAW = 255;

inline uint8_t TH_FIN = 0x01;
inline uint8_t TH_SYN = 0x02;
inline uint8_t TH_RST = 0x04;
inline uint8_t TH_PUSH = 0x08;
inline uint8_t TH_ACK = 0x10;
inline uint8_t TH_URG = 0x20;
inline uint8_t TH_ECE = 0x40;
inline uint8_t TH_CWR = 0x80;

typedef uint32_t ipaddr_t;
typedef struct in6_addr in6_addr_t;

typedef struct pktinfo {
  uintptr_t pkt_addr;
} pktinfo_t;

typedef struct csinfo {
  uintptr_t cs_addr;
  uint64_t cs_cid;
  pid_t cs_pid;
  zoneid_t cs_zoneid;
} csinfo_t;

typedef struct ipinfo {
  uint8_t ip_ver;
  uint16_t ip_plength;
  string ip_saddr;
  string ip_daddr;
} ipinfo_t;

typedef struct ifinfo {
  string if_name;
  int8_t if_local;
  int32_t if_ipstack;
  uintptr_t if_addr;
} ifinfo_t;

typedef struct ipv4info {
  uint8_t ipv4_ver;
  uint8_t ipv4_ihl;
  uint8_t ipv4_tos;
  uint16_t ipv4_length;
  uint16_t ipv4_ident;
  uint8_t ipv4_flags;
  uint16_t ipv4_offset;
  uint8_t ipv4_ttl;
  uint8_t ipv4_protocol;
  string ipv4_protostr;
  uint16_t ipv4_checksum;
  uint32_t ipv4_src;
  uint32_t ipv4_dst;
  string ipv4_saddr;
  string ipv4_daddr;
  struct iphdr *ipv4_hdr;
} ipv4info_t;

typedef struct ipv6info {
  uint8_t ipv6_ver;
  uint8_t ipv6_tclass;
  uint32_t ipv6_flow;
  uint16_t ipv6_plen;
  uint8_t ipv6_nexthdr;
  string ipv6_nextstr;
  uint8_t ipv6_hlim;
  struct in6_addr *ipv6_src;
  struct in6_addr *ipv6_dst;
  string ipv6_saddr;
  string ipv6_daddr;
  struct ipv6hdr *ipv6_hdr;
} ipv6info_t;

inline struct iphdr *__ipv4_header[struct sk_buff *S] =
    (struct iphdr *) (S->head + S->network_header);
inline struct ipv6hdr *__ipv6_header[struct sk_buff *S] =
    (struct ipv6hdr *) (S->head + S->network_header);
inline string __protocol_name[int p] =
    p == IPPROTO_TCP ? "TCP" : p == IPPROTO_UDP ? "UDP" : p == IPPROTO_ICMP ? "ICMP" :
    p == IPPROTO_ICMPV6 ? "ICMPV6" : p == IPPROTO_IGMP ? "IGMP" : p == IPPROTO_SCTP ? "SCTP" :
    lltostr((uint64_t) p);

translator pktinfo_t < struct sk_buff *S > {
  pkt_addr = (uintptr_t) S;
};

translator csinfo_t < struct sock *S > {
  cs_addr = (uintptr_t) S;
  cs_cid = (uint64_t) S;
  cs_pid = 0;
  cs_zoneid = 0;
};

translator ipinfo_t < struct sk_buff *S > {
  ip_ver = S == NULL ? 0 : __ipv4_header[S]->version;
  ip_plength = S == NULL ? 0 :
      __ipv4_header[S]->version == 4 ?
          ntohs(__ipv4_header[S]->tot_len) - 4 * __ipv4_header[S]->ihl :
          ntohs(__ipv6_header[S]->payload_len);
  ip_saddr = S == NULL ? "" :
      __ipv4_header[S]->version == 4 ? inet_ntoa(&__ipv4_header[S]->saddr) :
                                     inet_ntoa6(&__ipv6_header[S]->saddr);
  ip_daddr = S == NULL ? "" :
      __ipv4_header[S]->version == 4 ? inet_ntoa(&__ipv4_header[S]->daddr) :
                                     inet_ntoa6(&__ipv6_header[S]->daddr);
};

translator ifinfo_t < struct sk_buff *S > {
  if_name = S == NULL || S->dev == NULL ? "<none>" : stringof(S->dev->name);
  if_local = S == NULL || S->dev == NULL ? 0 : (S->dev->flags & 8) != 0;
  if_ipstack = 0;
  if_addr = S == NULL ? 0 : (uintptr_t) S->dev;
};

translator ipv4info_t < struct sk_buff *S > {
  ipv4_ver = S == NULL ? 0 : __ipv4_header[S]->version;
  ipv4_ihl = S == NULL ? 0 : 4 * __ipv4_header[S]->ihl;
  ipv4_tos = S == NULL ? 0 : __ipv4_header[S]->tos;
  ipv4_length = S == NULL ? 0 : ntohs(__ipv4_header[S]->tot_len);
  ipv4_ident = S == NULL ? 0 : ntohs(__ipv4_header[S]->id);
  ipv4_flags = S == NULL ? 0 : ntohs(__ipv4_header[S]->frag_off) >> 13;
  ipv4_offset = S == NULL ? 0 : 8 * (ntohs(__ipv4_header[S]->frag_off) & 0x1fff);
  ipv4_ttl = S == NULL ? 0 : __ipv4_header[S]->ttl;
  ipv4_protocol = S == NULL ? 0 : __ipv4_header[S]->protocol;
  ipv4_protostr = S == NULL ? "<null>" : __protocol_name[__ipv4_header[S]->protocol];
  ipv4_checksum = S == NULL ? 0 : ntohs(__ipv4_header[S]->check);
  ipv4_src = S == NULL ? 0 : ntohl(__ipv4_header[S]->saddr);
  ipv4_dst = S == NULL ? 0 : ntohl(__ipv4_header[S]->daddr);
  ipv4_saddr = S == NULL ? "<null>" : inet_ntoa(&__ipv4_header[S]->saddr);
  ipv4_daddr = S == NULL ? "<null>" : inet_ntoa(&__ipv4_header[S]->daddr);
  ipv4_hdr = S == NULL ? NULL : __ipv4_header[S];
};

translator ipv6info_t < struct sk_buff *S > {
  ipv6_ver = S == NULL ? 0 : __ipv6_header[S]->version;
  ipv6_tclass = S == NULL ? 0 :
      (__ipv6_header[S]->priority << 4) | (__ipv6_header[S]->flow_lbl[0] >> 4);
  ipv6_flow = S == NULL ? 0 :
      ((__ipv6_header[S]->flow_lbl[0] & 0xf) << 16) | (__ipv6_header[S]->flow_lbl[1] << 8) |
      __ipv6_header[S]->flow_lbl[2];
  ipv6_plen = S == NULL ? 0 : ntohs(__ipv6_header[S]->payload_len);
  ipv6_nexthdr = S == NULL ? 0 : __ipv6_header[S]->nexthdr;
  ipv6_nextstr = S == NULL ? "<null>" : __protocol_name[__ipv6_header[S]->nexthdr];
  ipv6_hlim = S == NULL ? 0 : __ipv6_header[S]->hop_limit;
  ipv6_src = S == NULL ? NULL : &__ipv6_header[S]->saddr;
  ipv6_dst = S == NULL ? NULL : &__ipv6_header[S]->daddr;
  ipv6_saddr = S == NULL ? "<null>" : inet_ntoa6(&__ipv6_header[S]->saddr);
  ipv6_daddr = S == NULL ? "<null>" : inet_ntoa6(&__ipv6_header[S]->daddr);
  ipv6_hdr = S == NULL ? NULL : __ipv6_header[S];
};
