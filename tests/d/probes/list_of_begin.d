/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 8: the columns of -l. */
/* flags: -l */
BEGIN
{
	exit(0);
}
/* output:
   ID   PROVIDER            MODULE                          FUNCTION NAME
    1     dtrace                                                     BEGIN
*/
