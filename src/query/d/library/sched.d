/* SPDX-License-Identifier: Apache-2.0 */
/* CPUs: cpuinfo_t of a number or of the scheduler's queue. */
typedef struct cpuinfo {
  processorid_t cpu_id;
  psetid_t cpu_pset;
  chipid_t cpu_chip;
  lgrp_id_t cpu_lgrp;
} cpuinfo_t;

translator cpuinfo_t < int C > {
  cpu_id = C;
  cpu_pset = 0;
  cpu_chip = 0;
  cpu_lgrp = 0;
};

translator cpuinfo_t < struct rq *Q > {
  cpu_id = Q->cpu;
  cpu_pset = 0;
  cpu_chip = 0;
  cpu_lgrp = 0;
};

inline cpuinfo_t *curcpu = xlate <cpuinfo_t *>((int) cpu);
