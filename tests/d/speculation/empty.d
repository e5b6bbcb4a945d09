/* SPDX-License-Identifier: Apache-2.0 */
/* Speculations in which nothing was recorded are committed and discarded like others. */
/* flags: -x nspec=2 */
/* processor: 0 */
BEGIN
{
	a = speculation();
	b = speculation();
}
BEGIN
{
	commit(a);
	commit(b);
}
tick-100ms
{
	discard(a);
	x = speculation();
	y = speculation();
}
tick-100ms
/x != 0 && y != 0/
{
	commit(y);
	discard(x);
}
tick-100ms
/x != 0 && y != 0/
{
	printf("%d", x != y);
	exit(0);
}
/* output:
CPU     ID                    FUNCTION:NAME
  0      4                      :tick-100ms 1

*/
