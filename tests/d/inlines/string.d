/* SPDX-License-Identifier: Apache-2.0 */
/* An inline string. */
inline string name = "clew";
BEGIN
{
	printf("%s %d\n", name, strlen(name));
	exit(0);
}
/* output:
clew 4

*/
