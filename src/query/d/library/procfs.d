/* SPDX-License-Identifier: Apache-2.0 */
/* Processes and threads: psinfo_t and lwpsinfo_t of struct task_struct. */
inline char SSLEEP = 1;
inline char SRUN = 2;
inline char SZOMB = 3;
inline char SSTOP = 4;
inline char SIDL = 5;
inline char SONPROC = 6;
inline char SWAIT = 7;

inline char PR_MODEL_ILP32 = 1;
inline char PR_MODEL_LP64 = 2;

/* Members that the translators leave out are those that the guide calls "not supported" on Linux. */
typedef struct psinfo {
  int pr_flag;
  int pr_nlwp;
  pid_t pr_pid;
  pid_t pr_ppid;
  pid_t pr_pgid;
  pid_t pr_sid;
  uid_t pr_uid;
  uid_t pr_euid;
  gid_t pr_gid;
  gid_t pr_egid;
  uintptr_t pr_addr;
  size_t pr_size;
  size_t pr_rssize;
  unsigned int pr_ttydev;
  unsigned short pr_pctcpu;
  unsigned short pr_pctmem;
  char pr_fname[16];
  char pr_psargs[80];
  int pr_wstat;
  int pr_argc;
  uintptr_t pr_argv;
  uintptr_t pr_envp;
  char pr_dmodel;
  uint64_t pr_start;
  uint64_t pr_time;
  uint64_t pr_ctime;
  id_t pr_taskid;
  id_t pr_projid;
  int pr_nzomb;
  id_t pr_poolid;
  id_t pr_zoneid;
  id_t pr_contract;
} psinfo_t;

typedef struct lwpsinfo {
  int pr_flag;
  id_t pr_lwpid;
  uintptr_t pr_addr;
  uintptr_t pr_wchan;
  char pr_stype;
  char pr_state;
  char pr_sname;
  int pr_nice;
  int pr_syscall;
  int pr_pri;
  char pr_clname[8];
  char pr_name[16];
  processorid_t pr_onpro;
} lwpsinfo_t;

/* Arguments can be read of the current process only; others show their name, and none of them. The
 * stack begins with argc, the addresses of the arguments and 0, and those of the environment. */
translator psinfo_t < struct task_struct *T > {
  pr_flag = T->flags;
  pr_nlwp = T->signal->nr_threads;
  pr_pid = T->tgid;
  pr_ppid = T->real_parent->tgid;
  pr_pgid = T->signal->pids[PIDTYPE_PGID]->numbers[0].nr;
  pr_sid = T->signal->pids[PIDTYPE_SID]->numbers[0].nr;
  pr_uid = T->cred->uid.val;
  pr_euid = T->cred->euid.val;
  pr_gid = T->cred->gid.val;
  pr_egid = T->cred->egid.val;
  pr_addr = (uintptr_t) T;
  pr_size = T->mm == NULL ? 0 : T->mm->total_vm * 4;
  pr_ttydev = T->signal->tty == NULL ? -1 : T->signal->tty->driver->major << 20 |
              (T->signal->tty->driver->minor_start + T->signal->tty->index);
  pr_fname = T->comm;
  pr_psargs = T->tgid == pid ? execargs : stringof(T->comm);
  pr_wstat = T->exit_code;
  pr_argc = T->mm == NULL || T->tgid != pid ? 0 :
            *(int *) copyin(T->mm->start_stack, sizeof (int));
  pr_argv = T->mm == NULL ? 0 : T->mm->start_stack + 8;
  pr_envp = T->mm == NULL || T->tgid != pid ? 0 : T->mm->start_stack + 16 +
            8 * *(int *) copyin(T->mm->start_stack, sizeof (int));
  pr_dmodel = PR_MODEL_LP64;
  pr_start = T->start_time;
};

/* pr_syscall: the number of the system call that the current thread is in; -1 when it is in none.
 * pr_state: SRUN whether it has a processor or waits for one; a thread that is about to sleep still
 * has one, and is SSLEEP at sched:::off-cpu. */
translator lwpsinfo_t < struct task_struct *T > {
  pr_flag = (T->__state & 0xc) != 0;
  pr_lwpid = T->pid;
  pr_addr = (uintptr_t) T;
  pr_state = T->exit_state != 0 ? SZOMB : T->__state == 0 ? SRUN : (T->__state & 0x3) != 0 ? SSLEEP :
             (T->__state & 0xc) != 0 ? SSTOP : SWAIT;
  pr_sname = T->exit_state != 0 ? 'Z' : T->__state == 0 ? 'R' : (T->__state & 0x3) != 0 ? 'S' :
             (T->__state & 0xc) != 0 ? 'T' : 'W';
  pr_nice = T->static_prio - 120;
  pr_syscall = T == curthread ? (int) uregs[15] : -1;
  pr_pri = T->prio;
  pr_clname = T->rt_priority != 0 ? "RT" : "TS";
  pr_name = T->comm;
  pr_onpro = T->thread_info.cpu;
};

inline psinfo_t *curpsinfo = xlate <psinfo_t *>(curthread);
inline lwpsinfo_t *curlwpsinfo = xlate <lwpsinfo_t *>(curthread);
