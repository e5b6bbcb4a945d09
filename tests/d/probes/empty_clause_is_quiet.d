/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 4 and 6: the default action prints nothing in quiet mode. */
BEGIN
{
}
BEGIN
{
	printf("done\n");
	exit(0);
}
/* output:
done

*/
