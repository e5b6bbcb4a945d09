/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 40: sums are signed. */
BEGIN
{
	@ = sum(10);
	@ = sum(-30);
	@ = sum(5);
	exit(0);
}
/* output:

              -15
*/
