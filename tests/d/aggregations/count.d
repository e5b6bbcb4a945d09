/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 34 and 35: how often; printed when tracing ends. */
BEGIN
{
	@ = count();
	@ = count();
	@ = count();
	exit(0);
}
/* output:

                3
*/
