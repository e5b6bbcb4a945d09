/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 40: the mean is cut toward zero. */
BEGIN
{
	@a = avg(1);
	@a = avg(2);
	@b = avg(-1);
	@b = avg(-2);
	@c = avg(10);
	@c = avg(30);
	exit(0);
}
/* output:

                1
               -1
               20
*/
