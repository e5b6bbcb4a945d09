/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 40: the standard deviation as an integer. */
BEGIN
{
	@a = stddev(2);
	@a = stddev(4);
	@a = stddev(4);
	@a = stddev(4);
	@a = stddev(5);
	@a = stddev(5);
	@a = stddev(7);
	@a = stddev(9);
	@b = stddev(5);
	exit(0);
}
/* output:

                2
                0
*/
