/* SPDX-License-Identifier: Apache-2.0 */
/* UDP: udpinfo_t of a packet, udpsinfo_t of a socket. */
typedef struct udpinfo {
  uint16_t udp_sport;
  uint16_t udp_dport;
  uint16_t udp_length;
  uint16_t udp_checksum;
  struct udphdr *udp_hdr;
} udpinfo_t;

typedef struct udpsinfo {
  uintptr_t udps_addr;
} udpsinfo_t;

inline struct udphdr *__udp_header[struct sk_buff *S] =
    (struct udphdr *) (S->head + S->transport_header);

translator udpinfo_t < struct sk_buff *S > {
  udp_sport = S == NULL ? 0 : ntohs(__udp_header[S]->source);
  udp_dport = S == NULL ? 0 : ntohs(__udp_header[S]->dest);
  udp_length = S == NULL ? 0 : ntohs(__udp_header[S]->len);
  udp_checksum = S == NULL ? 0 : ntohs(__udp_header[S]->check);
  udp_hdr = S == NULL ? NULL : __udp_header[S];
};

translator udpsinfo_t < struct sock *S > {
  udps_addr = (uintptr_t) S;
};
