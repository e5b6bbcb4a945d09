/* SPDX-License-Identifier: Apache-2.0 */
/* Values of all CPUs are put together. */
profile-500hz
{
	@a["x"] = count();
	@b[cpu] = count();
	n = 1;
}
tick-100ms
/n/
{
	exit(0);
}
END
{
	printa("%s\n", @a);
	trunc(@a);
	trunc(@b);
}
/* output:
x

*/
