/* SPDX-License-Identifier: Apache-2.0 */
/* TCP: tcpinfo_t of a packet, tcpsinfo_t of a socket, tcplsinfo_t of a state. */
inline int TCP_STATE_ESTABLISHED = 1;
inline int TCP_STATE_SYN_SENT = 2;
inline int TCP_STATE_SYN_RECEIVED = 3;
inline int TCP_STATE_FIN_WAIT_1 = 4;
inline int TCP_STATE_FIN_WAIT_2 = 5;
inline int TCP_STATE_TIME_WAIT = 6;
inline int TCP_STATE_CLOSED = 7;
inline int TCP_STATE_CLOSE_WAIT = 8;
inline int TCP_STATE_LAST_ACK = 9;
inline int TCP_STATE_LISTEN = 10;
inline int TCP_STATE_CLOSING = 11;

inline string tcp_state_string[int s] =
    s == TCP_STATE_ESTABLISHED ? "state-established" : s == TCP_STATE_SYN_SENT ? "state-syn-sent" :
    s == TCP_STATE_SYN_RECEIVED ? "state-syn-received" :
    s == TCP_STATE_FIN_WAIT_1 ? "state-fin-wait-1" : s == TCP_STATE_FIN_WAIT_2 ? "state-fin-wait-2" :
    s == TCP_STATE_TIME_WAIT ? "state-time-wait" : s == TCP_STATE_CLOSED ? "state-closed" :
    s == TCP_STATE_CLOSE_WAIT ? "state-close-wait" : s == TCP_STATE_LAST_ACK ? "state-last-ack" :
    s == TCP_STATE_LISTEN ? "state-listen" : s == TCP_STATE_CLOSING ? "state-closing" : "<unknown>";

typedef struct tcpinfo {
  uint16_t tcp_sport;
  uint16_t tcp_dport;
  uint32_t tcp_seq;
  uint32_t tcp_ack;
  uint8_t tcp_offset;
  uint8_t tcp_flags;
  uint16_t tcp_window;
  uint16_t tcp_checksum;
  uint16_t tcp_urgent;
  struct tcphdr *tcp_hdr;
} tcpinfo_t;

typedef struct tcpsinfo {
  uintptr_t tcps_addr;
  int tcps_local;
  int tcps_active;
  uint16_t tcps_lport;
  uint16_t tcps_rport;
  string tcps_laddr;
  string tcps_raddr;
  int32_t tcps_state;
  uint32_t tcps_suna;
  uint32_t tcps_snxt;
  uint32_t tcps_rnxt;
  uint32_t tcps_swnd;
  uint32_t tcps_rwnd;
  uint32_t tcps_cwnd;
  uint32_t tcps_cwnd_ssthresh;
  uint32_t tcps_rto;
  uint32_t tcps_mss;
  int tcps_retransmit;
} tcpsinfo_t;

typedef struct tcplsinfo {
  int32_t tcps_state;
} tcplsinfo_t;

inline struct tcphdr *__tcp_header[struct sk_buff *S] =
    (struct tcphdr *) (S->head + S->transport_header);

translator tcpinfo_t < struct sk_buff *S > {
  tcp_sport = S == NULL ? 0 : ntohs(__tcp_header[S]->source);
  tcp_dport = S == NULL ? 0 : ntohs(__tcp_header[S]->dest);
  tcp_seq = S == NULL ? 0 : ntohl(__tcp_header[S]->seq);
  tcp_ack = S == NULL ? 0 : ntohl(__tcp_header[S]->ack_seq);
  tcp_offset = S == NULL ? 0 : 4 * __tcp_header[S]->doff;
  tcp_flags = S == NULL ? 0 : ((uint8_t *) __tcp_header[S])[13];
  tcp_window = S == NULL ? 0 : ntohs(__tcp_header[S]->window);
  tcp_checksum = S == NULL ? 0 : ntohs(__tcp_header[S]->check);
  tcp_urgent = S == NULL ? 0 : ntohs(__tcp_header[S]->urg_ptr);
  tcp_hdr = S == NULL ? NULL : __tcp_header[S];
};

/* 10 is AF_INET6. */
translator tcpsinfo_t < struct sock *S > {
  tcps_addr = (uintptr_t) S;
  tcps_local = S == NULL ? 0 :
      S->__sk_common.skc_family != 10 &&
      S->__sk_common.skc_daddr == S->__sk_common.skc_rcv_saddr;
  tcps_active = S == NULL ? 0 : S->__sk_common.skc_state == TCP_STATE_SYN_SENT;
  tcps_lport = S == NULL ? 0 : S->__sk_common.skc_num;
  tcps_rport = S == NULL ? 0 : ntohs(S->__sk_common.skc_dport);
  tcps_laddr = S == NULL ? "<unknown>" :
      S->__sk_common.skc_family == 10 ? inet_ntoa6(&S->__sk_common.skc_v6_rcv_saddr) :
                                        inet_ntoa(&S->__sk_common.skc_rcv_saddr);
  tcps_raddr = S == NULL ? "<unknown>" :
      S->__sk_common.skc_family == 10 ? inet_ntoa6(&S->__sk_common.skc_v6_daddr) :
                                        inet_ntoa(&S->__sk_common.skc_daddr);
  tcps_state = S == NULL ? TCP_STATE_CLOSED : S->__sk_common.skc_state;
  tcps_suna = S == NULL ? 0 : ((struct tcp_sock *) S)->snd_una;
  tcps_snxt = S == NULL ? 0 : ((struct tcp_sock *) S)->snd_nxt;
  tcps_rnxt = S == NULL ? 0 : ((struct tcp_sock *) S)->rcv_nxt;
  tcps_swnd = S == NULL ? 0 : ((struct tcp_sock *) S)->snd_wnd;
  tcps_rwnd = S == NULL ? 0 : ((struct tcp_sock *) S)->rcv_wnd;
  tcps_cwnd = S == NULL ? 0 : ((struct tcp_sock *) S)->snd_cwnd;
  tcps_cwnd_ssthresh = S == NULL ? 0 : ((struct tcp_sock *) S)->snd_ssthresh;
  tcps_rto = S == NULL ? 0 : ((struct inet_connection_sock *) S)->icsk_rto;
  tcps_mss = S == NULL ? 0 : ((struct tcp_sock *) S)->mss_cache;
  tcps_retransmit = S == NULL ? 0 : ((struct inet_connection_sock *) S)->icsk_retransmits;
};

translator tcplsinfo_t < int state > {
  tcps_state = state;
};
