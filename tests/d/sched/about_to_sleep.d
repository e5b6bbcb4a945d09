/* SPDX-License-Identifier: Apache-2.0 */
/* At off-cpu the state tells whether a thread will sleep or was only preempted (the guide's whatfor.d). */
/* flags: -q -c 'sleep 0.02' */
sched:::off-cpu
/pid == $target && curlwpsinfo->pr_state == SSLEEP && curlwpsinfo->pr_sname == 'S'/
{
	slept = 1;
}
sched:::on-cpu
/pid == $target && curlwpsinfo->pr_state == SRUN/
{
	ran = 1;
}
END
{
	printf("%d %d\n", slept, ran);
}
/* output:
1 1

*/
