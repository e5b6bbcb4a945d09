/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 40: the first value counts even when it is negative. */
BEGIN
{
	@high = max(-7);
	@high = max(-9);
	@low = min(7);
	exit(0);
}
/* output:

               -7
                7
*/
