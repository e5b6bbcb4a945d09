/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over firings. */
int i;
tick-2ms
/i < 50/
{
	@s = sum(i);
	@c = count();
	@m = max(i);
	@a = avg(i);
	i++;
}
tick-2ms
/i == 50/
{
	exit(0);
}
END
{
	printa("%@d ", @s);
	printa("%@d ", @c);
	printa("%@d ", @m);
	printa("%@d\n", @a);
}
/* output:
1225 50 49 24

*/
