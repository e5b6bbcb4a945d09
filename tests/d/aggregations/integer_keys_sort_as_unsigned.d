/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 36: 0, 1, 2, then the negative ones. */
BEGIN
{
	@[-1] = count();
	@[2] = count();
	@[-2] = count();
	@[0] = count();
	@[1] = count();
	exit(0);
}
/* output:

        0                1
        1                1
        2                1
       -2                1
       -1                1
*/
