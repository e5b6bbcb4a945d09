/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 18: storing 0 to an element that does not exist takes no room. */
/* flags: -q -xdynvarsize=4k */
int i;
tick-1ms
/i < 300/
{
	a[i, "with a string"] = 0;
	i++;
}
tick-1ms
/i == 300/
{
	a[1, "x"] = 5;
	printf("%d\n", a[1, "x"]);
	exit(0);
}
/* output:
5

*/
