/* SPDX-License-Identifier: Apache-2.0 */
/* cpu and curcpu agree. */
BEGIN
{
	printf("%d %d\n", cpu >= 0 && cpu < 4096, curcpu->cpu_id == cpu);
	exit(0);
}
/* output:
1 1

*/
