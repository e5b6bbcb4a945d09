/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 45 and 47: a speculation() that found no buffer is reported; the status stays 0. */
/* stderr: failed speculation */
BEGIN
{
	a = speculation();
	b = speculation();
}
tick-100ms
{
	exit(0);
}
/* output:

*/
