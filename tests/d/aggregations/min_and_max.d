/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 40: signed, and order of first use. */
BEGIN
{
	@low = min(3);
	@low = min(-7);
	@low = min(5);
	@high = max(3);
	@high = max(-7);
	@high = max(5);
	exit(0);
}
/* output:

               -7
                5
*/
