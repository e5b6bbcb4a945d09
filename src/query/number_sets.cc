// SPDX-License-Identifier: Apache-2.0
#include "query/number_sets.h"

#include <algorithm>
#include <array>
#include <csignal>

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "query/error_numbers.h"

namespace clew::query {
namespace {

// A number's name, or that of bits. Of flags, a mask says of which bits it is one value among
// others; without one they are its own.
struct NumberName {
  const char* name;
  int64_t value;
  int64_t mask = 0;
};

// The numbers are those of Linux's user API (include/uapi), as this machine's headers have them.

constexpr NumberName kAccessMode[] = {
    {"F_OK", F_OK}, {"R_OK", R_OK}, {"W_OK", W_OK}, {"X_OK", X_OK}};
constexpr NumberName kAtFlags[] = {{"AT_SYMLINK_NOFOLLOW", AT_SYMLINK_NOFOLLOW},
                                   {"AT_REMOVEDIR", AT_REMOVEDIR},
                                   {"AT_SYMLINK_FOLLOW", AT_SYMLINK_FOLLOW},
                                   {"AT_NO_AUTOMOUNT", AT_NO_AUTOMOUNT},
                                   {"AT_EMPTY_PATH", AT_EMPTY_PATH}};
constexpr NumberName kCapability[] = {{"CAP_CHOWN", CAP_CHOWN},
                                      {"CAP_DAC_OVERRIDE", CAP_DAC_OVERRIDE},
                                      {"CAP_DAC_READ_SEARCH", CAP_DAC_READ_SEARCH},
                                      {"CAP_FOWNER", CAP_FOWNER},
                                      {"CAP_FSETID", CAP_FSETID},
                                      {"CAP_KILL", CAP_KILL},
                                      {"CAP_SETGID", CAP_SETGID},
                                      {"CAP_SETUID", CAP_SETUID},
                                      {"CAP_SETPCAP", CAP_SETPCAP},
                                      {"CAP_LINUX_IMMUTABLE", CAP_LINUX_IMMUTABLE},
                                      {"CAP_NET_BIND_SERVICE", CAP_NET_BIND_SERVICE},
                                      {"CAP_NET_BROADCAST", CAP_NET_BROADCAST},
                                      {"CAP_NET_ADMIN", CAP_NET_ADMIN},
                                      {"CAP_NET_RAW", CAP_NET_RAW},
                                      {"CAP_IPC_LOCK", CAP_IPC_LOCK},
                                      {"CAP_IPC_OWNER", CAP_IPC_OWNER},
                                      {"CAP_SYS_MODULE", CAP_SYS_MODULE},
                                      {"CAP_SYS_RAWIO", CAP_SYS_RAWIO},
                                      {"CAP_SYS_CHROOT", CAP_SYS_CHROOT},
                                      {"CAP_SYS_PTRACE", CAP_SYS_PTRACE},
                                      {"CAP_SYS_PACCT", CAP_SYS_PACCT},
                                      {"CAP_SYS_ADMIN", CAP_SYS_ADMIN},
                                      {"CAP_SYS_BOOT", CAP_SYS_BOOT},
                                      {"CAP_SYS_NICE", CAP_SYS_NICE},
                                      {"CAP_SYS_RESOURCE", CAP_SYS_RESOURCE},
                                      {"CAP_SYS_TIME", CAP_SYS_TIME},
                                      {"CAP_SYS_TTY_CONFIG", CAP_SYS_TTY_CONFIG},
                                      {"CAP_MKNOD", CAP_MKNOD},
                                      {"CAP_LEASE", CAP_LEASE},
                                      {"CAP_AUDIT_WRITE", CAP_AUDIT_WRITE},
                                      {"CAP_AUDIT_CONTROL", CAP_AUDIT_CONTROL},
                                      {"CAP_SETFCAP", CAP_SETFCAP},
                                      {"CAP_MAC_OVERRIDE", CAP_MAC_OVERRIDE},
                                      {"CAP_MAC_ADMIN", CAP_MAC_ADMIN},
                                      {"CAP_SYSLOG", CAP_SYSLOG},
                                      {"CAP_WAKE_ALARM", CAP_WAKE_ALARM},
                                      {"CAP_BLOCK_SUSPEND", CAP_BLOCK_SUSPEND},
                                      {"CAP_AUDIT_READ", CAP_AUDIT_READ},
                                      {"CAP_PERFMON", CAP_PERFMON},
                                      {"CAP_BPF", CAP_BPF},
                                      {"CAP_CHECKPOINT_RESTORE", CAP_CHECKPOINT_RESTORE}};
constexpr NumberName kCloneFlags[] = {{"SIGCHLD", SIGCHLD, 0xFF},
                                      {"CLONE_VM", CLONE_VM},
                                      {"CLONE_FS", CLONE_FS},
                                      {"CLONE_FILES", CLONE_FILES},
                                      {"CLONE_SIGHAND", CLONE_SIGHAND},
                                      {"CLONE_PIDFD", CLONE_PIDFD},
                                      {"CLONE_PTRACE", CLONE_PTRACE},
                                      {"CLONE_VFORK", CLONE_VFORK},
                                      {"CLONE_PARENT", CLONE_PARENT},
                                      {"CLONE_THREAD", CLONE_THREAD},
                                      {"CLONE_NEWNS", CLONE_NEWNS},
                                      {"CLONE_SYSVSEM", CLONE_SYSVSEM},
                                      {"CLONE_SETTLS", CLONE_SETTLS},
                                      {"CLONE_PARENT_SETTID", CLONE_PARENT_SETTID},
                                      {"CLONE_CHILD_CLEARTID", CLONE_CHILD_CLEARTID},
                                      {"CLONE_UNTRACED", CLONE_UNTRACED},
                                      {"CLONE_CHILD_SETTID", CLONE_CHILD_SETTID},
                                      {"CLONE_NEWCGROUP", CLONE_NEWCGROUP},
                                      {"CLONE_NEWUTS", CLONE_NEWUTS},
                                      {"CLONE_NEWIPC", CLONE_NEWIPC},
                                      {"CLONE_NEWUSER", CLONE_NEWUSER},
                                      {"CLONE_NEWPID", CLONE_NEWPID},
                                      {"CLONE_NEWNET", CLONE_NEWNET},
                                      {"CLONE_IO", CLONE_IO}};
constexpr NumberName kEpollEvents[] = {
    {"EPOLLIN", EPOLLIN},         {"EPOLLPRI", EPOLLPRI},
    {"EPOLLOUT", EPOLLOUT},       {"EPOLLERR", EPOLLERR},
    {"EPOLLHUP", EPOLLHUP},       {"EPOLLRDNORM", EPOLLRDNORM},
    {"EPOLLRDBAND", EPOLLRDBAND}, {"EPOLLWRNORM", EPOLLWRNORM},
    {"EPOLLWRBAND", EPOLLWRBAND}, {"EPOLLMSG", EPOLLMSG},
    {"EPOLLRDHUP", EPOLLRDHUP},   {"EPOLLEXCLUSIVE", EPOLLEXCLUSIVE},
    {"EPOLLWAKEUP", EPOLLWAKEUP}, {"EPOLLONESHOT", EPOLLONESHOT},
    {"EPOLLET", EPOLLET}};
constexpr NumberName kEpollOperation[] = {{"EPOLL_CTL_ADD", EPOLL_CTL_ADD},
                                          {"EPOLL_CTL_DEL", EPOLL_CTL_DEL},
                                          {"EPOLL_CTL_MOD", EPOLL_CTL_MOD}};
constexpr NumberName kFcntlCommand[] = {{"F_DUPFD", F_DUPFD},
                                        {"F_GETFD", F_GETFD},
                                        {"F_SETFD", F_SETFD},
                                        {"F_GETFL", F_GETFL},
                                        {"F_SETFL", F_SETFL},
                                        {"F_GETLK", F_GETLK},
                                        {"F_SETLK", F_SETLK},
                                        {"F_SETLKW", F_SETLKW},
                                        {"F_SETOWN", F_SETOWN},
                                        {"F_GETOWN", F_GETOWN},
                                        {"F_SETSIG", F_SETSIG},
                                        {"F_GETSIG", F_GETSIG},
                                        {"F_OFD_GETLK", F_OFD_GETLK},
                                        {"F_OFD_SETLK", F_OFD_SETLK},
                                        {"F_OFD_SETLKW", F_OFD_SETLKW},
                                        {"F_SETLEASE", F_SETLEASE},
                                        {"F_GETLEASE", F_GETLEASE},
                                        {"F_NOTIFY", F_NOTIFY},
                                        {"F_DUPFD_CLOEXEC", F_DUPFD_CLOEXEC},
                                        {"F_SETPIPE_SZ", F_SETPIPE_SZ},
                                        {"F_GETPIPE_SZ", F_GETPIPE_SZ},
                                        {"F_ADD_SEALS", F_ADD_SEALS},
                                        {"F_GET_SEALS", F_GET_SEALS}};
constexpr NumberName kFileMode[] = {{"S_IFSOCK", S_IFSOCK, S_IFMT},
                                    {"S_IFLNK", S_IFLNK, S_IFMT},
                                    {"S_IFREG", S_IFREG, S_IFMT},
                                    {"S_IFBLK", S_IFBLK, S_IFMT},
                                    {"S_IFDIR", S_IFDIR, S_IFMT},
                                    {"S_IFCHR", S_IFCHR, S_IFMT},
                                    {"S_IFIFO", S_IFIFO, S_IFMT},
                                    {"S_ISUID", S_ISUID},
                                    {"S_ISGID", S_ISGID},
                                    {"S_ISVTX", S_ISVTX},
                                    {"S_IRUSR", S_IRUSR},
                                    {"S_IWUSR", S_IWUSR},
                                    {"S_IXUSR", S_IXUSR},
                                    {"S_IRGRP", S_IRGRP},
                                    {"S_IWGRP", S_IWGRP},
                                    {"S_IXGRP", S_IXGRP},
                                    {"S_IROTH", S_IROTH},
                                    {"S_IWOTH", S_IWOTH},
                                    {"S_IXOTH", S_IXOTH}};
constexpr NumberName kFlockOperation[] = {
    {"LOCK_SH", LOCK_SH}, {"LOCK_EX", LOCK_EX}, {"LOCK_NB", LOCK_NB}, {"LOCK_UN", LOCK_UN}};
constexpr NumberName kFutexOperation[] = {
    {"FUTEX_WAIT", FUTEX_WAIT, FUTEX_CMD_MASK},
    {"FUTEX_WAKE", FUTEX_WAKE, FUTEX_CMD_MASK},
    {"FUTEX_FD", FUTEX_FD, FUTEX_CMD_MASK},
    {"FUTEX_REQUEUE", FUTEX_REQUEUE, FUTEX_CMD_MASK},
    {"FUTEX_CMP_REQUEUE", FUTEX_CMP_REQUEUE, FUTEX_CMD_MASK},
    {"FUTEX_WAKE_OP", FUTEX_WAKE_OP, FUTEX_CMD_MASK},
    {"FUTEX_LOCK_PI", FUTEX_LOCK_PI, FUTEX_CMD_MASK},
    {"FUTEX_UNLOCK_PI", FUTEX_UNLOCK_PI, FUTEX_CMD_MASK},
    {"FUTEX_TRYLOCK_PI", FUTEX_TRYLOCK_PI, FUTEX_CMD_MASK},
    {"FUTEX_WAIT_BITSET", FUTEX_WAIT_BITSET, FUTEX_CMD_MASK},
    {"FUTEX_WAKE_BITSET", FUTEX_WAKE_BITSET, FUTEX_CMD_MASK},
    {"FUTEX_WAIT_REQUEUE_PI", FUTEX_WAIT_REQUEUE_PI, FUTEX_CMD_MASK},
    {"FUTEX_CMP_REQUEUE_PI", FUTEX_CMP_REQUEUE_PI, FUTEX_CMD_MASK},
    {"FUTEX_PRIVATE_FLAG", FUTEX_PRIVATE_FLAG},
    {"FUTEX_CLOCK_REALTIME", FUTEX_CLOCK_REALTIME}};
constexpr NumberName kIpProtocol[] = {
    {"IPPROTO_IP", IPPROTO_IP},         {"IPPROTO_ICMP", IPPROTO_ICMP},
    {"IPPROTO_IGMP", IPPROTO_IGMP},     {"IPPROTO_TCP", IPPROTO_TCP},
    {"IPPROTO_UDP", IPPROTO_UDP},       {"IPPROTO_IPV6", IPPROTO_IPV6},
    {"IPPROTO_ICMPV6", IPPROTO_ICMPV6}, {"IPPROTO_SCTP", IPPROTO_SCTP},
    {"IPPROTO_RAW", IPPROTO_RAW}};
constexpr NumberName kMadviseAdvice[] = {{"MADV_NORMAL", MADV_NORMAL},
                                         {"MADV_RANDOM", MADV_RANDOM},
                                         {"MADV_SEQUENTIAL", MADV_SEQUENTIAL},
                                         {"MADV_WILLNEED", MADV_WILLNEED},
                                         {"MADV_DONTNEED", MADV_DONTNEED},
                                         {"MADV_FREE", MADV_FREE},
                                         {"MADV_REMOVE", MADV_REMOVE},
                                         {"MADV_DONTFORK", MADV_DONTFORK},
                                         {"MADV_DOFORK", MADV_DOFORK},
                                         {"MADV_MERGEABLE", MADV_MERGEABLE},
                                         {"MADV_UNMERGEABLE", MADV_UNMERGEABLE},
                                         {"MADV_HUGEPAGE", MADV_HUGEPAGE},
                                         {"MADV_NOHUGEPAGE", MADV_NOHUGEPAGE},
                                         {"MADV_DONTDUMP", MADV_DONTDUMP},
                                         {"MADV_DODUMP", MADV_DODUMP},
                                         {"MADV_WIPEONFORK", MADV_WIPEONFORK},
                                         {"MADV_KEEPONFORK", MADV_KEEPONFORK},
                                         {"MADV_COLD", MADV_COLD},
                                         {"MADV_PAGEOUT", MADV_PAGEOUT},
                                         {"MADV_POPULATE_READ", MADV_POPULATE_READ},
                                         {"MADV_POPULATE_WRITE", MADV_POPULATE_WRITE}};
constexpr NumberName kMmapFlags[] = {{"MAP_SHARED", MAP_SHARED, MAP_TYPE},
                                     {"MAP_PRIVATE", MAP_PRIVATE, MAP_TYPE},
                                     {"MAP_SHARED_VALIDATE", MAP_SHARED_VALIDATE, MAP_TYPE},
                                     {"MAP_FIXED", MAP_FIXED},
                                     {"MAP_ANONYMOUS", MAP_ANONYMOUS},
                                     {"MAP_32BIT", MAP_32BIT},
                                     {"MAP_GROWSDOWN", MAP_GROWSDOWN},
                                     {"MAP_DENYWRITE", MAP_DENYWRITE},
                                     {"MAP_EXECUTABLE", MAP_EXECUTABLE},
                                     {"MAP_LOCKED", MAP_LOCKED},
                                     {"MAP_NORESERVE", MAP_NORESERVE},
                                     {"MAP_POPULATE", MAP_POPULATE},
                                     {"MAP_NONBLOCK", MAP_NONBLOCK},
                                     {"MAP_STACK", MAP_STACK},
                                     {"MAP_HUGETLB", MAP_HUGETLB},
                                     {"MAP_SYNC", MAP_SYNC},
                                     {"MAP_FIXED_NOREPLACE", MAP_FIXED_NOREPLACE}};
constexpr NumberName kMmapProt[] = {
    {"PROT_NONE", PROT_NONE}, {"PROT_READ", PROT_READ},           {"PROT_WRITE", PROT_WRITE},
    {"PROT_EXEC", PROT_EXEC}, {"PROT_GROWSDOWN", PROT_GROWSDOWN}, {"PROT_GROWSUP", PROT_GROWSUP}};
constexpr NumberName kMountFlags[] = {{"MS_RDONLY", MS_RDONLY},
                                      {"MS_NOSUID", MS_NOSUID},
                                      {"MS_NODEV", MS_NODEV},
                                      {"MS_NOEXEC", MS_NOEXEC},
                                      {"MS_SYNCHRONOUS", MS_SYNCHRONOUS},
                                      {"MS_REMOUNT", MS_REMOUNT},
                                      {"MS_MANDLOCK", MS_MANDLOCK},
                                      {"MS_DIRSYNC", MS_DIRSYNC},
                                      {"MS_NOATIME", MS_NOATIME},
                                      {"MS_NODIRATIME", MS_NODIRATIME},
                                      {"MS_BIND", MS_BIND},
                                      {"MS_MOVE", MS_MOVE},
                                      {"MS_REC", MS_REC},
                                      {"MS_SILENT", MS_SILENT},
                                      {"MS_POSIXACL", MS_POSIXACL},
                                      {"MS_UNBINDABLE", MS_UNBINDABLE},
                                      {"MS_PRIVATE", MS_PRIVATE},
                                      {"MS_SLAVE", MS_SLAVE},
                                      {"MS_SHARED", MS_SHARED},
                                      {"MS_RELATIME", MS_RELATIME},
                                      {"MS_STRICTATIME", MS_STRICTATIME},
                                      {"MS_LAZYTIME", MS_LAZYTIME}};
constexpr NumberName kMsgFlags[] = {{"MSG_OOB", MSG_OOB},
                                    {"MSG_PEEK", MSG_PEEK},
                                    {"MSG_DONTROUTE", MSG_DONTROUTE},
                                    {"MSG_CTRUNC", MSG_CTRUNC},
                                    {"MSG_PROXY", MSG_PROXY},
                                    {"MSG_TRUNC", MSG_TRUNC},
                                    {"MSG_DONTWAIT", MSG_DONTWAIT},
                                    {"MSG_EOR", MSG_EOR},
                                    {"MSG_WAITALL", MSG_WAITALL},
                                    {"MSG_FIN", MSG_FIN},
                                    {"MSG_SYN", MSG_SYN},
                                    {"MSG_CONFIRM", MSG_CONFIRM},
                                    {"MSG_RST", MSG_RST},
                                    {"MSG_ERRQUEUE", MSG_ERRQUEUE},
                                    {"MSG_NOSIGNAL", MSG_NOSIGNAL},
                                    {"MSG_MORE", MSG_MORE},
                                    {"MSG_WAITFORONE", MSG_WAITFORONE},
                                    {"MSG_BATCH", MSG_BATCH},
                                    {"MSG_ZEROCOPY", MSG_ZEROCOPY},
                                    {"MSG_FASTOPEN", MSG_FASTOPEN},
                                    {"MSG_CMSG_CLOEXEC", MSG_CMSG_CLOEXEC}};
constexpr NumberName kOpenFlags[] = {{"O_RDONLY", O_RDONLY, O_ACCMODE},
                                     {"O_WRONLY", O_WRONLY, O_ACCMODE},
                                     {"O_RDWR", O_RDWR, O_ACCMODE},
                                     {"O_CREAT", O_CREAT},
                                     {"O_EXCL", O_EXCL},
                                     {"O_NOCTTY", O_NOCTTY},
                                     {"O_TRUNC", O_TRUNC},
                                     {"O_APPEND", O_APPEND},
                                     {"O_NONBLOCK", O_NONBLOCK},
                                     {"O_SYNC", O_SYNC},
                                     {"O_DSYNC", O_DSYNC},
                                     {"O_ASYNC", O_ASYNC},
                                     {"O_DIRECT", O_DIRECT},
                                     {"O_LARGEFILE", 0x8000},
                                     {"O_TMPFILE", O_TMPFILE},
                                     {"O_DIRECTORY", O_DIRECTORY},
                                     {"O_NOFOLLOW", O_NOFOLLOW},
                                     {"O_NOATIME", O_NOATIME},
                                     {"O_CLOEXEC", O_CLOEXEC},
                                     {"O_PATH", O_PATH},
                                     {"O_ACCMODE", O_ACCMODE, O_ACCMODE}};
constexpr NumberName kPollEvents[] = {
    {"POLLIN", POLLIN},         {"POLLPRI", POLLPRI},       {"POLLOUT", POLLOUT},
    {"POLLERR", POLLERR},       {"POLLHUP", POLLHUP},       {"POLLNVAL", POLLNVAL},
    {"POLLRDNORM", POLLRDNORM}, {"POLLRDBAND", POLLRDBAND}, {"POLLWRNORM", POLLWRNORM},
    {"POLLWRBAND", POLLWRBAND}, {"POLLMSG", POLLMSG},       {"POLLRDHUP", POLLRDHUP}};
constexpr NumberName kSeekWhence[] = {{"SEEK_SET", SEEK_SET},
                                      {"SEEK_CUR", SEEK_CUR},
                                      {"SEEK_END", SEEK_END},
                                      {"SEEK_DATA", SEEK_DATA},
                                      {"SEEK_HOLE", SEEK_HOLE}};
constexpr NumberName kShutdownHow[] = {
    {"SHUT_RD", SHUT_RD}, {"SHUT_WR", SHUT_WR}, {"SHUT_RDWR", SHUT_RDWR}};
constexpr NumberName kSignals[] = {
    {"SIGHUP", SIGHUP},   {"SIGINT", SIGINT},       {"SIGQUIT", SIGQUIT}, {"SIGILL", SIGILL},
    {"SIGTRAP", SIGTRAP}, {"SIGABRT", SIGABRT},     {"SIGBUS", SIGBUS},   {"SIGFPE", SIGFPE},
    {"SIGKILL", SIGKILL}, {"SIGUSR1", SIGUSR1},     {"SIGSEGV", SIGSEGV}, {"SIGUSR2", SIGUSR2},
    {"SIGPIPE", SIGPIPE}, {"SIGALRM", SIGALRM},     {"SIGTERM", SIGTERM}, {"SIGSTKFLT", SIGSTKFLT},
    {"SIGCHLD", SIGCHLD}, {"SIGCONT", SIGCONT},     {"SIGSTOP", SIGSTOP}, {"SIGTSTP", SIGTSTP},
    {"SIGTTIN", SIGTTIN}, {"SIGTTOU", SIGTTOU},     {"SIGURG", SIGURG},   {"SIGXCPU", SIGXCPU},
    {"SIGXFSZ", SIGXFSZ}, {"SIGVTALRM", SIGVTALRM}, {"SIGPROF", SIGPROF}, {"SIGWINCH", SIGWINCH},
    {"SIGIO", SIGIO},     {"SIGPWR", SIGPWR},       {"SIGSYS", SIGSYS}};
constexpr NumberName kSocketFamily[] = {{"AF_UNSPEC", AF_UNSPEC}, {"AF_UNIX", AF_UNIX},
                                        {"AF_INET", AF_INET},     {"AF_AX25", AF_AX25},
                                        {"AF_IPX", AF_IPX},       {"AF_APPLETALK", AF_APPLETALK},
                                        {"AF_BRIDGE", AF_BRIDGE}, {"AF_INET6", AF_INET6},
                                        {"AF_KEY", AF_KEY},       {"AF_NETLINK", AF_NETLINK},
                                        {"AF_PACKET", AF_PACKET}, {"AF_RDS", AF_RDS},
                                        {"AF_PPPOX", AF_PPPOX},   {"AF_CAN", AF_CAN},
                                        {"AF_TIPC", AF_TIPC},     {"AF_BLUETOOTH", AF_BLUETOOTH},
                                        {"AF_ALG", AF_ALG},       {"AF_VSOCK", AF_VSOCK},
                                        {"AF_KCM", AF_KCM},       {"AF_QIPCRTR", AF_QIPCRTR},
                                        {"AF_SMC", AF_SMC},       {"AF_XDP", AF_XDP}};
constexpr NumberName kSocketLevel[] = {
    {"SOL_IP", SOL_IP},         {"SOL_SOCKET", SOL_SOCKET},   {"SOL_TCP", SOL_TCP},
    {"SOL_IPV6", SOL_IPV6},     {"SOL_ICMPV6", SOL_ICMPV6},   {"SOL_RAW", SOL_RAW},
    {"SOL_PACKET", SOL_PACKET}, {"SOL_NETLINK", SOL_NETLINK}, {"SOL_TLS", SOL_TLS}};
constexpr NumberName kSocketOption[] = {{"SO_DEBUG", SO_DEBUG},
                                        {"SO_REUSEADDR", SO_REUSEADDR},
                                        {"SO_TYPE", SO_TYPE},
                                        {"SO_ERROR", SO_ERROR},
                                        {"SO_DONTROUTE", SO_DONTROUTE},
                                        {"SO_BROADCAST", SO_BROADCAST},
                                        {"SO_SNDBUF", SO_SNDBUF},
                                        {"SO_RCVBUF", SO_RCVBUF},
                                        {"SO_KEEPALIVE", SO_KEEPALIVE},
                                        {"SO_OOBINLINE", SO_OOBINLINE},
                                        {"SO_PRIORITY", SO_PRIORITY},
                                        {"SO_LINGER", SO_LINGER},
                                        {"SO_REUSEPORT", SO_REUSEPORT},
                                        {"SO_PASSCRED", SO_PASSCRED},
                                        {"SO_PEERCRED", SO_PEERCRED},
                                        {"SO_RCVLOWAT", SO_RCVLOWAT},
                                        {"SO_SNDLOWAT", SO_SNDLOWAT},
                                        {"SO_RCVTIMEO", SO_RCVTIMEO},
                                        {"SO_SNDTIMEO", SO_SNDTIMEO},
                                        {"SO_BINDTODEVICE", SO_BINDTODEVICE},
                                        {"SO_ATTACH_FILTER", SO_ATTACH_FILTER},
                                        {"SO_DETACH_FILTER", SO_DETACH_FILTER},
                                        {"SO_PEERNAME", SO_PEERNAME},
                                        {"SO_TIMESTAMP", SO_TIMESTAMP},
                                        {"SO_ACCEPTCONN", SO_ACCEPTCONN},
                                        {"SO_PEERSEC", SO_PEERSEC},
                                        {"SO_SNDBUFFORCE", SO_SNDBUFFORCE},
                                        {"SO_RCVBUFFORCE", SO_RCVBUFFORCE},
                                        {"SO_MARK", SO_MARK},
                                        {"SO_PROTOCOL", SO_PROTOCOL},
                                        {"SO_DOMAIN", SO_DOMAIN},
                                        {"SO_INCOMING_CPU", SO_INCOMING_CPU},
                                        {"SO_ATTACH_BPF", SO_ATTACH_BPF},
                                        {"SO_COOKIE", SO_COOKIE},
                                        {"SO_ZEROCOPY", SO_ZEROCOPY}};
constexpr NumberName kSocketType[] = {{"SOCK_STREAM", SOCK_STREAM, 0xF},
                                      {"SOCK_DGRAM", SOCK_DGRAM, 0xF},
                                      {"SOCK_RAW", SOCK_RAW, 0xF},
                                      {"SOCK_RDM", SOCK_RDM, 0xF},
                                      {"SOCK_SEQPACKET", SOCK_SEQPACKET, 0xF},
                                      {"SOCK_DCCP", SOCK_DCCP, 0xF},
                                      {"SOCK_PACKET", SOCK_PACKET, 0xF},
                                      {"SOCK_CLOEXEC", SOCK_CLOEXEC},
                                      {"SOCK_NONBLOCK", SOCK_NONBLOCK}};
constexpr NumberName kTcpOption[] = {{"TCP_NODELAY", TCP_NODELAY},
                                     {"TCP_MAXSEG", TCP_MAXSEG},
                                     {"TCP_CORK", TCP_CORK},
                                     {"TCP_KEEPIDLE", TCP_KEEPIDLE},
                                     {"TCP_KEEPINTVL", TCP_KEEPINTVL},
                                     {"TCP_KEEPCNT", TCP_KEEPCNT},
                                     {"TCP_SYNCNT", TCP_SYNCNT},
                                     {"TCP_LINGER2", TCP_LINGER2},
                                     {"TCP_DEFER_ACCEPT", TCP_DEFER_ACCEPT},
                                     {"TCP_WINDOW_CLAMP", TCP_WINDOW_CLAMP},
                                     {"TCP_INFO", TCP_INFO},
                                     {"TCP_QUICKACK", TCP_QUICKACK},
                                     {"TCP_CONGESTION", TCP_CONGESTION},
                                     {"TCP_MD5SIG", TCP_MD5SIG},
                                     {"TCP_USER_TIMEOUT", TCP_USER_TIMEOUT},
                                     {"TCP_FASTOPEN", TCP_FASTOPEN},
                                     {"TCP_NOTSENT_LOWAT", TCP_NOTSENT_LOWAT},
                                     {"TCP_ULP", TCP_ULP}};
constexpr NumberName kTcpState[] = {{"TCP_ESTABLISHED", TCP_ESTABLISHED},
                                    {"TCP_SYN_SENT", TCP_SYN_SENT},
                                    {"TCP_SYN_RECV", TCP_SYN_RECV},
                                    {"TCP_FIN_WAIT1", TCP_FIN_WAIT1},
                                    {"TCP_FIN_WAIT2", TCP_FIN_WAIT2},
                                    {"TCP_TIME_WAIT", TCP_TIME_WAIT},
                                    {"TCP_CLOSE", TCP_CLOSE},
                                    {"TCP_CLOSE_WAIT", TCP_CLOSE_WAIT},
                                    {"TCP_LAST_ACK", TCP_LAST_ACK},
                                    {"TCP_LISTEN", TCP_LISTEN},
                                    {"TCP_CLOSING", TCP_CLOSING}};
constexpr NumberName kWaitOptions[] = {{"WNOHANG", WNOHANG},
                                       {"WUNTRACED", WUNTRACED},
                                       {"WEXITED", WEXITED},
                                       {"WCONTINUED", WCONTINUED},
                                       {"WNOWAIT", WNOWAIT}};

struct NumberRow {
  std::string_view name;
  std::string_view doc;
  uint8_t size_bytes;
  bool is_flags;
  std::span<const NumberName> names;
};
constexpr NumberRow kNumberRows[] = {
    {"access_mode", "access()'s mode", 4, true, kAccessMode},
    {"at_flags", "flags of openat2(), fstatat(), unlinkat() and their kin", 4, true, kAtFlags},
    {"capability", "a capability of capabilities(7)", 4, false, kCapability},
    {"clone_flags", "flags of clone() and unshare(); the low byte is the signal that ends tell", 8,
     true, kCloneFlags},
    {"epoll_events", "what epoll waits for, or tells", 4, true, kEpollEvents},
    {"epoll_operation", "epoll_ctl()'s op", 4, false, kEpollOperation},
    {"fcntl_command", "fcntl()'s cmd", 4, false, kFcntlCommand},
    {"file_mode", "a file's type, with its permissions as a number (st_mode)", 4, true, kFileMode},
    {"flock_operation", "flock()'s operation", 4, true, kFlockOperation},
    {"futex_operation", "futex()'s op", 4, true, kFutexOperation},
    {"ip_protocol", "a protocol of IP, as socket() has it", 4, false, kIpProtocol},
    {"madvise_advice", "madvise()'s advice", 4, false, kMadviseAdvice},
    {"mmap_flags", "mmap()'s flags", 4, true, kMmapFlags},
    {"mmap_prot", "prot of mmap() and mprotect()", 4, true, kMmapProt},
    {"mount_flags", "mount()'s flags", 8, true, kMountFlags},
    {"msg_flags", "flags of send() and recv()", 4, true, kMsgFlags},
    {"open_flags", "open()'s flags", 4, true, kOpenFlags},
    {"poll_events", "what poll() waits for, or tells", 2, true, kPollEvents},
    {"seek_whence", "lseek()'s whence", 4, false, kSeekWhence},
    {"shutdown_how", "shutdown()'s how", 4, false, kShutdownHow},
    {"signal", "a signal", 4, false, kSignals},
    {"socket_family", "a family of addresses, as socket() and struct sockaddr have it", 4, false,
     kSocketFamily},
    {"socket_level", "a level of setsockopt()", 4, false, kSocketLevel},
    {"socket_option", "an option of SOL_SOCKET", 4, false, kSocketOption},
    {"socket_type", "socket()'s type", 4, true, kSocketType},
    {"tcp_option", "an option of TCP", 4, false, kTcpOption},
    {"tcp_state", "a state of a TCP connection, as the kernel has it (sk_state)", 4, false,
     kTcpState},
    {"wait_options", "waitpid()'s options", 4, true, kWaitOptions},
};

NumberSet made_of(const NumberRow& row) {
  NumberSet set{.name = row.name,
                .doc = row.doc,
                .type = {.size_bytes = row.size_bytes, .is_signed = !row.is_flags},
                .enumeration = {.name = std::string(row.name), .enumerators = {}}};
  for (const NumberName& each : row.names) {
    set.enumeration.enumerators.push_back({.name = each.name, .value = each.value});
    if (!row.is_flags) continue;
    const int64_t own = each.value == 0 ? int64_t{-1} : each.value;
    set.enumeration.masks.push_back(each.mask == 0 ? own : each.mask);
  }
  return set;
}

std::vector<NumberSet> make_all() {
  std::vector<NumberSet> all;
  all.push_back({.name = "errno",
                 .doc = "why a call failed",
                 .type = {.size_bytes = 4},
                 .enumeration = {.name = "errno", .enumerators = error_numbers()}});
  for (const NumberRow& row : kNumberRows)
    all.push_back(made_of(row));
  return all;
}

}  // namespace

std::span<const NumberSet> number_sets() {
  static const std::vector<NumberSet> kAll = make_all();
  return kAll;
}

const NumberSet* find_number_set(std::string_view name) {
  const std::span<const NumberSet> all = number_sets();
  const auto found = std::find_if(all.begin(), all.end(),
                                  [name](const NumberSet& set) { return set.name == name; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace clew::query
