/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 32: each printa() prints what there is. */
BEGIN
{
	@a = sum(1);
	printa(@a);
	printa(@a);
	exit(0);
}
/* output:

                1

                1

*/
