/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 32 and 35: the value takes 16 columns. */
BEGIN
{
	@a = sum(42);
	printa(@a);
	exit(0);
}
/* output:

               42

*/
