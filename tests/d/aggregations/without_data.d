/* SPDX-License-Identifier: Apache-2.0 */
/* An aggregation that was never reached prints nothing. */
BEGIN
{
	exit(0);
}
END
/0/
{
	@a = count();
}
/* output:

*/
