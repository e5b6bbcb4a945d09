/* SPDX-License-Identifier: Apache-2.0 */
/* A missing member gives NULL. */
BEGIN
{
	this->t = "{\"a\": 1}";
	printf("%d\n", json(this->t, "b") == NULL);
	exit(0);
}
/* output:
1

*/
