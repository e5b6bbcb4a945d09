/* SPDX-License-Identifier: Apache-2.0 */
/* profile-N fires on every CPU, with a pc of the kernel or of the user. */
profile-997hz
{
	@ = count();
	@bad = sum(arg0 == 0 && arg1 == 0);
	seen = 1;
}
tick-200ms
/seen/
{
	printf("seen\n");
	printa("%@d\n", @bad);
	exit(0);
}
END
{
	trunc(@);
}
/* output:
seen
0

*/
