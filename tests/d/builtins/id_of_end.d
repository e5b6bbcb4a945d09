/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 44: END has number 2. */
END
{
	printf("%d %s\n", id, probename);
}
BEGIN
{
	exit(0);
}
/* output:
2 END

*/
