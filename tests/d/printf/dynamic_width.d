/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 30: * takes the width from the arguments. */
BEGIN
{
	w = 6;
	printf("[%*d] [%-*d] [%*s]\n", 5, 42, w, 42, w, "abc");
	exit(0);
}
/* output:
[   42] [42    ] [   abc]

*/
