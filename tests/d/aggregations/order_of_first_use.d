/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 34: all aggregations, in the order in which the program first names them. */
BEGIN
{
	@z = sum(1);
	@a = sum(2);
	@m = sum(3);
	exit(0);
}
/* output:

                1
                2
                3
*/
