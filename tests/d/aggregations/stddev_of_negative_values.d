/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 40: the values lie around 0. */
BEGIN
{
	@ = stddev(-100);
	@ = stddev(100);
	exit(0);
}
/* output:

              100
*/
