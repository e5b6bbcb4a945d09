/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles and could be enabled. */
/* flags: -q -e */
profile:::profile-101hz
/pid != 0/
{
	@num[cpu, pid, execname] = count();
}
END
{
	printf("%5s %8s %-20s %8s\n", "CPU", "PID", "CMD", "SAMPLES");
	printa("%5d %8d %-20s %@8d\n", @num);
}
