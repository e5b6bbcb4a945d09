/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 9: a description with and one without its provider. */
dtrace:::BEGIN,
END
{
	printf("%s\n", probename);
	exit(0);
}
/* output:
BEGIN
END

*/
