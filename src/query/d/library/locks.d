/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What mutex_owned() and its kin say of the kernel's locks. The low bits of a mutex's owner are
 * flags (kernel/locking/mutex.h); all mutexes of Linux are adaptive. A rwlock_t begins with a
 * struct qrwlock, which counts readers from bit 9 on; below are its writer and one that waits (include/asm-generic/qrwlock.h).
 */
inline struct task_struct *mutex_owner[struct mutex *m] =
    (struct task_struct *)(m->owner.counter & ~7L);
inline int mutex_owned[struct mutex *m] = (m->owner.counter & ~7L) == (long)curthread;
inline int mutex_type_adaptive[struct mutex *m] = m != NULL;
inline int mutex_type_spin[struct mutex *m] = m == NULL;
inline int rw_read_held[void *l] = (((struct qrwlock *)l)->cnts.counter >> 9) != 0;
inline int rw_write_held[void *l] = (((struct qrwlock *)l)->cnts.counter & 0x1ff) == 0xff;
inline int rw_iswriter[void *l] = (((struct qrwlock *)l)->cnts.counter & 0x1ff) != 0;
