/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 32 and 35: ints of 4 and 8 bytes and strings. */
BEGIN
{
	@a[1, 2ll, "three"] = sum(4);
	printa(@a);
	exit(0);
}
/* output:

        1                2  three                                                             4

*/
